use std::time::Duration;

use actor::testing::run;
use model::runtime::ContainerState;

use super::rig::{Rig, config, round, until};
use crate::Config;

fn long(text: &str) -> String {
    format!("{text} {}\n", "x".repeat(100))
}

#[test]
fn a_log_at_its_limit_is_renamed_and_opened_anew() {
    run(1, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &long("old"));
        rig.start(&kernel, config());
        until("rotation", || rig.reopened() == 1 && rig.files("app").len() == 2).await;
        let files = rig.files("app");
        let (stem, time) = files[1].split_at("0.log.".len());
        assert!(stem == "0.log." && time.len() == 15 && time.as_bytes()[8] == b'-', "{files:?}");
        assert_eq!(rig.text("app", &files[1]), long("old"));
        assert_eq!(rig.text("app", "0.log"), "");
    });
}

#[test]
fn small_logs_cost_the_runtime_nothing() {
    run(2, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &"x".repeat(99));
        rig.fake.forget_calls();
        rig.start(&kernel, config());
        for _ in 0..5 {
            round().await;
        }
        assert_eq!(rig.files("app"), ["0.log"]);
        assert_eq!(rig.fake.calls(), []);
        rig.write("app", "x");
        round().await;
        until("the hundredth byte", || rig.files("app").len() == 2).await;
    });
}

#[test]
fn a_container_that_writes_all_the_time_keeps_as_many_files_as_it_may() {
    run(3, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.start(&kernel, config());
        let mut most = 0;
        for n in 0..9 {
            rig.write("app", &long(&format!("round {n}")));
            let before = rig.reopened();
            round().await;
            until("rotation", || rig.reopened() > before && rig.files("app").contains(&"0.log".to_owned())).await;
            most = most.max(rig.files("app").len());
        }
        let files = rig.files("app");
        assert_eq!((files.len(), most), (5, 5), "{files:?}");
        assert_eq!(files.iter().filter(|f| f.ends_with(".gz")).count(), 3, "{files:?}");
        assert!(!files[4].ends_with(".gz"), "the newest stays plain for who still reads it: {files:?}");
        let expected: String = (5..9).map(|n| long(&format!("round {n}"))).collect();
        assert_eq!(rig.everything("app"), expected);
    });
}

#[test]
fn what_a_broken_compression_left_is_cleared_away() {
    run(4, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        let beside = |name: &str| rig.log("app").with_file_name(name);
        rig.dir.write(beside("0.log.20200101-000000"), "first");
        rig.dir.write(beside("0.log.20200101-000000.tmp"), "half");
        rig.dir.write(beside("0.log.20200101-000001"), "second");
        rig.dir.write(beside("0.log.20200101-000001.gz"), "second");
        rig.write("app", &long("now"));
        rig.start(&kernel, config());
        until("rotation", || rig.reopened() == 1 && rig.files("app").contains(&"0.log".to_owned())).await;
        let files = rig.files("app");
        assert_eq!(files[1..3], ["0.log.20200101-000000.gz", "0.log.20200101-000001.gz"], "{files:?}");
        assert_eq!(files.len(), 4, "{files:?}");
        assert_eq!(rig.everything("app"), format!("firstsecond{}", long("now")));
    });
}

#[test]
fn only_what_runs_is_rotated() {
    run(5, |kernel| async move {
        let mut rig = Rig::new().await;
        for (name, state) in [
            ("ended", ContainerState::Exited),
            ("created", ContainerState::Created),
            ("strange", ContainerState::Unknown),
            ("runs", ContainerState::Running),
        ] {
            rig.container(name).await;
            rig.observe(name, state);
            rig.write(name, &long("text"));
        }
        rig.start(&kernel, config());
        until("rotation", || rig.files("runs").len() == 2).await;
        round().await;
        for name in ["ended", "created", "strange"] {
            assert_eq!(rig.files(name), ["0.log"], "{name}");
        }
    });
}

#[test]
fn a_negative_limit_means_never() {
    run(6, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.write("app", &long("text"));
        rig.start(&kernel, Config { max_size: None, ..config() });
        round().await;
        assert_eq!(rig.files("app"), ["0.log"]);
    });
}

#[test]
fn a_log_that_vanished_is_opened_anew() {
    run(7, |kernel| async move {
        let mut rig = Rig::new().await;
        rig.container("app").await;
        rig.dir.remove(rig.log("app"));
        rig.start(&kernel, config());
        until("a new log", || rig.files("app") == ["0.log"]).await;
        round().await;
        assert_eq!(rig.reopened(), 1);
    });
}

#[test]
fn every_log_has_its_turn() {
    run(8, |kernel| async move {
        let mut rig = Rig::new().await;
        let names: Vec<String> = (0..12).map(|n| format!("app{n}")).collect();
        for name in &names {
            rig.container(name).await;
            rig.write(name, &long("text"));
        }
        rig.start(&kernel, Config { max_workers: 3, interval: Duration::from_secs(3600), ..config() });
        until("all rotated", || names.iter().all(|n| rig.files(n).len() == 2)).await;
        assert_eq!(rig.reopened(), 12);
    });
}
