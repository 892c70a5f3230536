//! Making room, in simulated time, on a disk that is full and stays so.

use std::time::Duration;

use actor::testing::run;
use contract::image::RemoveUnusedImages;
use contract::runtime::Observed;
use image_pull::gc::Thresholds;
use model::PodUid;
use model::runtime::PodObservation;

use super::rig::{Bench, Setup, id_of, with_bench};

const MINUTE: Duration = Duration::from_secs(60);

fn always() -> Thresholds {
    Thresholds::default()
}

fn setup(gc: Thresholds) -> Setup {
    Setup { gc, ..Setup::default() }
}

/// The runtime shows a pod.
fn show(bench: &Bench, pod: &str, there: bool) {
    let uid = PodUid::from(format!("uid-{pod}").as_str());
    if there {
        fakes::observe(&bench.wiring, PodObservation::empty(uid, "default", pod));
    } else {
        bench.wiring.take_away::<Observed>(&uid);
    }
}

#[test]
fn unused_images_go_when_the_disk_is_full_and_the_sandbox_image_stays() {
    with_bench(setup(always()), async |bench| {
        bench.put(&["r.io/a:1", "r.io/b:1", "registry.k8s.io/pause:3.10"]);
        tokio::time::sleep(MINUTE).await;
        let mut ids = ["r.io/a:1", "r.io/b:1"].map(id_of);
        ids.sort();
        assert_eq!(bench.removed(), ids, "what was there at the start is old");
        let events = bench.events().await;
        assert!(events[0].starts_with("node Warning FreeDiskSpaceFailed: Failed to garbage collect required amount"));
        assert_eq!(events.len(), 1, "one failure is no news");
        tokio::time::sleep(5 * MINUTE).await;
        let events = bench.events().await;
        assert!(events.iter().any(|e| e.starts_with("node Warning ImageGCFailed: Failed to garbage collect")));
    });
}

#[test]
fn nothing_goes_while_there_is_room() {
    run(2, |kernel| async move {
        let bench =
            Bench::start(&kernel, setup(Thresholds { high_percent: 100, max_age: 10_000 * MINUTE, ..always() }));
        bench.put(&["r.io/a:1"]);
        tokio::time::sleep(60 * MINUTE).await;
        assert!(bench.removed().is_empty());
        assert!(bench.events().await.is_empty());
    });
}

#[test]
fn an_image_of_a_pod_stays_while_the_pod_does() {
    with_bench(setup(always()), async |bench| {
        tokio::time::sleep(MINUTE).await;
        bench.ensure("p", "r.io/a:1", "IfNotPresent").await.unwrap();
        show(&bench, "p", true);
        tokio::time::sleep(30 * MINUTE).await;
        assert!(bench.removed().is_empty());
        assert_eq!(bench.files("pulled").len(), 1);
        show(&bench, "p", false);
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")]);
        assert!(bench.files("pulled").is_empty(), "the record goes with its image");
    });
}

#[test]
fn an_image_that_was_just_pulled_waits_for_its_container() {
    run(4, |kernel| async move {
        let bench = Bench::start(&kernel, setup(Thresholds { min_age: Duration::ZERO, ..always() }));
        tokio::time::sleep(MINUTE).await;
        bench.ensure("p", "r.io/a:1", "IfNotPresent").await.unwrap();
        tokio::time::sleep(9 * MINUTE).await;
        assert!(bench.removed().is_empty());
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")], "its pod never came");
    });
}

#[test]
fn room_is_looked_for_after_a_pull() {
    with_bench(setup(always()), async |bench| {
        tokio::time::sleep(290 * MINUTE / 60).await;
        bench.put(&["r.io/old:1"]);
        // First seen at 300 s, old enough at 420 s, and the next look of its own comes at 600 s.
        tokio::time::sleep(140 * MINUTE / 60).await;
        bench.ensure("p", "r.io/new:1", "IfNotPresent").await.unwrap();
        assert!(bench.removed().is_empty());
        tokio::time::sleep(MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/old:1")]);
    });
}

#[test]
fn images_unused_for_too_long_go_without_need() {
    run(6, |kernel| async move {
        let t = Thresholds { high_percent: 100, max_age: 60 * MINUTE, ..always() };
        let bench = Bench::start(&kernel, setup(t));
        bench.put(&["r.io/a:1"]);
        tokio::time::sleep(59 * MINUTE).await;
        assert!(bench.removed().is_empty());
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")]);
    });
}

#[test]
fn everything_goes_that_nobody_uses_when_a_disk_runs_short_whatever_room_there_is() {
    run(3, |kernel| async move {
        let bench = Bench::start(&kernel, setup(Thresholds { high_percent: 100, ..always() }));
        bench.put(&["r.io/a:1", "r.io/b:1", "registry.k8s.io/pause:3.10"]);
        bench.ensure("p", "r.io/used:1", "IfNotPresent").await.unwrap();
        let (one, other) = tokio::join!(bench.wiring.ask(RemoveUnusedImages), bench.wiring.ask(RemoveUnusedImages));
        let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
        assert!(one > 0 && other == 0, "what went goes once: {one} {other}");
        let mut ids = ["r.io/a:1", "r.io/b:1"].map(id_of);
        ids.sort();
        assert_eq!(bench.removed(), ids);
        let of_node = |events: Vec<String>| events.iter().any(|event| event.starts_with("node"));
        assert!(!of_node(bench.events().await), "that there was no more is no failure");
    });
}

#[test]
fn neither_a_crash_nor_a_clock_that_is_set_changes_how_old_an_image_is() {
    run(8, |kernel| async move {
        let bench = Bench::start(&kernel, setup(Thresholds { high_percent: 100, ..always() }));
        let remove = || async { bench.wiring.ask(RemoveUnusedImages).await.unwrap().unwrap() };
        remove().await;
        bench.put(&["r.io/a:1"]);
        remove().await;
        bench.manager.kill();
        actor::testing::settle().await;
        for days in [1, -2, 1] {
            kernel.clock().set_by(days * 86_400 * 1_000_000_000);
            remove().await;
            assert!(bench.removed().is_empty(), "it is minutes old: {days}");
        }
        kernel.clock().set_by(-86_400 * 1_000_000_000);
        tokio::time::sleep(2 * MINUTE).await;
        remove().await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")]);
    });
}

#[test]
fn a_crash_does_not_keep_images_that_are_unused_for_too_long() {
    run(9, |kernel| async move {
        let t = Thresholds { high_percent: 100, max_age: 60 * MINUTE, ..always() };
        let bench = Bench::start(&kernel, setup(t));
        bench.put(&["r.io/a:1"]);
        for _ in 0..3 {
            tokio::time::sleep(19 * MINUTE).await;
            bench.manager.kill();
        }
        assert!(bench.removed().is_empty());
        tokio::time::sleep(15 * MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")]);
    });
}

#[test]
fn what_was_known_of_images_before_another_one_had_the_place_makes_none_old() {
    run(10, |kernel| async move {
        let t = Thresholds { high_percent: 100, max_age: 60 * MINUTE, ..always() };
        let mut bench = Bench::start(&kernel, setup(t));
        bench.put(&["r.io/a:1"]);
        tokio::time::sleep(MINUTE).await;
        let remove = async |bench: &Bench| bench.wiring.ask(RemoveUnusedImages).await.unwrap().unwrap();
        // Meanwhile it may have gone and come again.
        bench.is_away(&kernel, 180 * MINUTE).await;
        remove(&bench).await;
        assert!(bench.removed().is_empty(), "it may be seconds old");
        tokio::time::sleep(59 * MINUTE).await;
        assert!(bench.removed().is_empty(), "nobody knows when it was used last");
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(bench.removed(), [id_of("r.io/a:1")]);

        bench.put(&["r.io/b:1"]);
        tokio::time::sleep(10 * MINUTE).await;
        bench.is_away(&kernel, MINUTE).await;
        remove(&bench).await;
        assert_eq!(bench.removed(), [id_of("r.io/b:1")], "a short absence is as a crash");
    });
}
