//! A runtime that does not do its part, and deaths in the middle.

use actor::testing::{run, settle};
use fakes::runtime::{Fault, FaultKind};
use tonic::Code;

use super::rig::{INTERVAL, Rig, config, round, until};
use crate::Config;

fn long(text: &str) -> String {
    format!("{text} {}\n", "x".repeat(100))
}

/// Writes half of it, then the disk is full.
struct Full(fakes::Folder);

impl ports::log::Compress for Full {
    fn compress(&self, _: &std::path::Path, to: &std::path::Path) -> ports::host::HostResult<()> {
        self.0.write(to, "half");
        Err(ports::host::HostError::new("compress", to, std::io::Error::from(std::io::ErrorKind::StorageFull)))
    }
}

#[test]
fn a_disk_without_room_for_compression_stops_no_rotation() {
    run(10, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.compress = std::sync::Arc::new(Full(rig.dir.clone()));
        rig.container("app").await;
        rig.start(&kernel, config());
        let mut all = String::new();
        for n in 1..=3 {
            rig.write("app", &long(&n.to_string()));
            all += &long(&n.to_string());
            round().await;
            until("rotation", || rig.reopened() == n && rig.has_log("app")).await;
        }
        assert_eq!(rig.everything("app"), all);
        assert_eq!(rig.files("app").len(), 4, "nothing half done: {:?}", rig.files("app"));
        for n in 4..=9 {
            rig.write("app", &long(&n.to_string()));
            round().await;
            until("rotation", || rig.reopened() == n && rig.has_log("app")).await;
        }
        assert_eq!(rig.files("app").len(), 5, "as many as are allowed");
    });
}

#[test]
fn a_rotation_that_the_runtime_refuses_is_undone() {
    run(11, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &long("text"));
        rig.fake.inject(Fault::error("ReopenContainerLog", Code::Unknown, "no").times(2));
        rig.start(&kernel, config());
        for tries in 1..=2 {
            until("refusal", || rig.reopened() == tries && rig.files("app") == ["0.log"]).await;
            assert_eq!(rig.text("app", "0.log"), long("text"));
            round().await;
        }
        until("rotation", || rig.files("app").len() == 2).await;
        assert_eq!(rig.everything("app"), long("text"));
    });
}

#[test]
fn a_log_that_the_runtime_made_after_all_is_not_written_over() {
    run(12, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &long("old"));
        let lost = FaultKind::ErrorAfter(Code::DeadlineExceeded, "lost".to_owned());
        rig.fake.inject(Fault::new("ReopenContainerLog", lost).times(1));
        rig.start(&kernel, config());
        until("rotation", || rig.files("app").len() == 2 && rig.has_log("app")).await;
        rig.write("app", "new");
        round().await;
        assert_eq!(rig.everything("app"), format!("{}new", long("old")));
        assert_eq!(rig.reopened(), 1);
    });
}

#[test]
fn a_runtime_that_hangs_holds_up_its_worker_alone() {
    run(13, |kernel| async move {
        let mut rig = Rig::new().await;
        for name in ["stuck", "fine", "more"] {
            rig.container(name).await;
            rig.write(name, &long("text"));
        }
        rig.fake.inject(Fault::hang("ReopenContainerLog").matching("stuck").times(1));
        rig.start(&kernel, Config { max_workers: 2, ..config() });
        until("the others", || rig.files("fine").len() == 2 && rig.files("more").len() == 2).await;
        // The call has a deadline; then the log is given back and rotated anew.
        for _ in 0..30 {
            round().await;
        }
        until("the one that hung", || rig.files("stuck").len() == 2 && rig.has_log("stuck")).await;
        assert_eq!(rig.everything("stuck"), long("text"));
    });
}

#[test]
fn the_rotated_file_of_this_second_is_not_written_over() {
    run(14, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &long("one"));
        let manager = rig.start(&kernel, config());
        until("rotation", || rig.files("app").len() == 2 && rig.has_log("app")).await;
        rig.write("app", &long("two"));
        // Rebuilt within the same second, it looks at once.
        manager.kill();
        for _ in 0..50 {
            settle().await;
        }
        assert_eq!(rig.everything("app"), [long("one"), long("two")].concat());
        tokio::time::sleep(INTERVAL).await;
        until("rotation", || rig.reopened() == 2 && rig.has_log("app")).await;
        assert_eq!(rig.everything("app"), [long("one"), long("two")].concat());
    });
}

#[test]
fn a_death_at_any_point_loses_nothing_and_leaves_no_log_without_its_file() {
    for (point, refusals) in
        [("scan", 0), ("maintain", 0), ("renamed", 0), ("reopened", 0), ("renamed", 1), ("roll-back", 1)]
    {
        run(15, move |kernel| async move {
            kernel.faults().add_text(&format!("log-manager: panic@{point}#1")).unwrap();
            kernel.faults().enable();
            let mut rig = Rig::new().await;
            rig.container("app").await;
            rig.write("app", &long("one"));
            rig.fake.inject(Fault::error("ReopenContainerLog", Code::Unknown, "no").times(refusals));
            rig.start(&kernel, config());
            for n in 2..5 {
                round().await;
                until("a log", || rig.has_log("app")).await;
                rig.write("app", &long(&n.to_string()));
            }
            round().await;
            until("the last rotation", || rig.text("app", "0.log").is_empty()).await;
            let expected = [long("one"), long("2"), long("3"), long("4")].concat();
            assert_eq!(rig.everything("app"), expected, "{point}, {refusals}");
            assert_eq!(kernel.directory().get("log-manager").unwrap().restarts, 1, "{point}");
        });
    }
}
