use actor::testing::run;
use contract::runtime::RuntimeInfo;
use contract::stats::{Cadvisor, Summarise};
use cri_api::v1;
use fakes::runtime::{Code, Fault};
use fakes::stats::Cgroups;

use super::Bed;

/// Breaks one part, and what the answer is then.
type Row = (&'static str, fn(&mut Bed), &'static str);

#[test]
fn each_part_that_a_whole_answer_needs_fails_it_with_its_name() {
    let table: [Row; 7] = [
        ("root cgroup", |b| b.tree.remove_cgroup("/"), "failed to get root cgroup stats: it is not there"),
        (
            "runtime",
            |b| b.runtime.inject(Fault::error("ListContainerStats", Code::Unavailable, "no connection")),
            "failed to list pod stats: no connection",
        ),
        (
            "images",
            |b| b.runtime.inject(Fault::error("ImageFsInfo", Code::Internal, "broken")),
            "failed to get imageFs stats: broken",
        ),
        (
            "no image file system",
            |b| b.runtime.set_image_fs(v1::ImageFsInfoResponse::default()),
            "failed to get imageFs stats: imageFs information is unavailable",
        ),
        (
            "root directory",
            |b| b.config.root_dir = "/not/there".into(),
            "failed to get rootFs stats: statfs /not/there",
        ),
        (
            "processes",
            |b| std::fs::remove_file(b.dir.path().join("proc/loadavg")).unwrap(),
            "failed to get rlimit stats: read ",
        ),
        (
            "nothing listed yet",
            |b| b.wiring.set(RuntimeInfo::unknown()),
            "failed to list pod stats: the runtime has not told yet what runs",
        ),
    ];
    for (row, damage, expected) in table {
        run(1, |kernel| async move {
            let mut bed = Bed::new(Cgroups::V1);
            bed.pod("web", &["app"]);
            damage(&mut bed);
            bed.start(&kernel);
            let e = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap_err();
            assert!(e.message.starts_with(expected), "{row}: {e}");
        });
    }
}

#[test]
fn a_runtime_that_does_not_answer_is_given_up_and_asked_again_by_the_next() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.start(&kernel);
        bed.runtime.inject(Fault::hold("ListContainerStats"));
        let e = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap_err();
        assert_eq!(e.message, "failed to list pod stats: the runtime did not answer within 10 s");
        // Whoever needs no runtime was never held up.
        bed.wiring.call(Summarise { only_cpu_and_memory: true }).await.unwrap();
        bed.runtime.clear_faults();
        bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
    });
}

#[test]
fn a_crash_while_gathering_is_an_error_for_those_who_wait_and_nobody_else() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        let actor = bed.start(&kernel);
        kernel.faults().add_text("stats-manager: panic@gather#1").unwrap();
        kernel.faults().enable();
        let (one, two) = tokio::join!(
            bed.wiring.call(Summarise { only_cpu_and_memory: false }),
            bed.wiring.call(Summarise { only_cpu_and_memory: false })
        );
        assert!(one.is_err() && two.is_err());
        assert_eq!(bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap().pods.len(), 1);
        assert_eq!(actor.info().restarts, 1);
    });
}

#[test]
fn cadvisor_tells_what_it_can_and_that_something_is_missing() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        std::fs::remove_file(bed.dir.path().join("proc/meminfo")).unwrap();
        bed.start(&kernel);
        let text = bed.wiring.call(Cadvisor).await.unwrap();
        assert!(text.contains("container_scrape_error 1\n"));
        assert!(text.contains("container=\"app\""));
    });
}

#[test]
fn a_gathering_that_panics_is_an_error_and_restarts_nobody() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        let actor = bed.start(&kernel);
        kernel.faults().add_text("stats-manager: panic@gathering#1").unwrap();
        kernel.faults().enable();
        assert_eq!(
            bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap_err().message,
            "gathering panicked"
        );
        assert_eq!(bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap().pods.len(), 1);
        assert_eq!(actor.info().restarts, 0);
    });
}
