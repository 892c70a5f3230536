//! Requests in simulated time.

use std::time::Duration;

use actor::testing::{run, settle};
use contract::image::{EnsuredImage, ImageView};
use fakes::runtime::{Code, FakeImage, Fault, Pull};

use super::rig::{Bench, Setup, id_of, reason, request, with_bench};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_image_that_is_there_is_used_without_a_pull() {
    with_bench(Setup::default(), async |bench| {
        for (image, there) in [
            ("plain:1", FakeImage::new("plain:1")),
            ("numeric:1", FakeImage::new("numeric:1").uid(1000)),
            ("named", FakeImage::new("named:latest").username("app")),
        ] {
            bench.runtime.add_image(there.clone());
            for policy in ["IfNotPresent", "Never"] {
                let got = bench.ensure("p", image, policy).await.unwrap();
                let (image_ref, uid, username) = (there.id.clone(), there.uid, there.username.clone());
                assert_eq!(got, EnsuredImage { image_ref, uid, username });
            }
            let line = format!(
                "p spec.containers{{app}} Normal Pulled: Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            assert_eq!(bench.events().await, [line.clone(), line]);
        }
        assert!(bench.pulls().is_empty());
    });
}

#[test]
fn an_absent_image_is_pulled_with_what_the_kubelet_sends() {
    with_bench(Setup::default(), async |bench| {
        bench.runtime.registry("numeric", Pull::Succeeds(Duration::from_millis(2345)));
        bench.runtime.registry_offers(FakeImage { size: 4242, ..FakeImage::new("numeric").uid(1000) });
        let got = bench.ensure("p", "numeric", "IfNotPresent").await.unwrap();
        assert_eq!(got, EnsuredImage { image_ref: id_of("numeric"), uid: Some(1000), username: String::new() });
        assert_eq!(
            bench.events().await,
            [
                "p spec.containers{app} Normal Pulling: Pulling image \"numeric\"",
                "p spec.containers{app} Normal Pulled: Successfully pulled image \"numeric\" in 2.345s (2.345s including waiting). Image size: 4242 bytes.",
            ]
        );
        let sent = bench.pulls().remove(0);
        let spec = sent.image.unwrap();
        assert_eq!((spec.image.as_str(), spec.annotations["note"].as_str()), ("numeric:latest", "kept"));
        assert_eq!(sent.sandbox_config.unwrap().metadata.unwrap().name, "p");
        assert!(sent.auth.is_none());
    });
}

#[test]
fn always_pulls_what_is_there() {
    with_bench(Setup::default(), async |bench| {
        bench.put(&["a:1"]);
        for _ in 0..2 {
            assert!(bench.ensure("p", "a:1", "Always").await.is_ok());
        }
        assert_eq!(bench.pulls().len(), 2);
    });
}

#[test]
fn failures_table() {
    with_bench(Setup::default(), async |bench| {
        bench.fails("unknown:1", Code::Unknown, "no match for platform");
        bench.fails("deadline:1", Code::DeadlineExceeded, "Deadline Exceeded");
        bench.fails("registry:1", Code::Unknown, "RegistryUnavailable: gone");
        for (image, policy, reason, message, event) in [
            (
                "absent:1",
                "Never",
                "ErrImageNeverPull",
                "Container image \"absent:1\" is not present with pull policy of Never",
                "Warning ErrImageNeverPull: Container image \"absent:1\" is not present with pull policy of Never",
            ),
            (
                "Bad Name",
                "Always",
                "InvalidImageName",
                "Failed to apply default image tag \"Bad Name\": couldn't parse image name \"Bad Name\": invalid reference format: repository name (Bad Name) must be lowercase",
                "Warning InspectFailed: Failed to apply default image tag \"Bad Name\": couldn't parse image name \"Bad Name\": invalid reference format: repository name (Bad Name) must be lowercase",
            ),
            (
                "unknown:1",
                "IfNotPresent",
                "ErrImagePull",
                "no match for platform",
                "Warning Failed: Failed to pull image \"unknown:1\": no match for platform",
            ),
            (
                "deadline:1",
                "IfNotPresent",
                "ErrImagePull",
                "rpc error: code = DeadlineExceeded desc = Deadline Exceeded",
                "Warning Failed: Failed to pull image \"deadline:1\": rpc error: code = DeadlineExceeded desc = Deadline Exceeded",
            ),
            (
                "registry:1",
                "IfNotPresent",
                "RegistryUnavailable",
                "image pull failed for registry:1 because the registry is unavailable: gone",
                "Warning Failed: Failed to pull image \"registry:1\": RegistryUnavailable: gone",
            ),
        ] {
            let e = bench.ensure("p", image, policy).await.unwrap_err();
            assert_eq!((e.reason.as_str(), e.message.as_str()), (reason, message), "{image}");
            let events = bench.events().await;
            assert_eq!(events.last().unwrap().strip_prefix("p spec.containers{app} "), Some(event), "{image}");
        }
        bench.runtime.inject(Fault::error("ImageStatus", Code::Unavailable, "gone"));
        let e = bench.ensure("p", "a:1", "IfNotPresent").await.unwrap_err();
        assert_eq!(e.reason, "ImageInspectError");
        assert_eq!(e.message, "Failed to inspect image \"a:1\": rpc error: code = Unavailable desc = gone");
    });
}

#[test]
fn failed_pulls_back_off_per_pod_and_name_their_reason() {
    with_bench(Setup::default(), async |bench| {
        bench.fails("a:1", Code::NotFound, "no such thing");
        let pulls = || bench.pulls().len();
        assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ErrImagePull");
        bench.events().await;
        let e = bench.ensure("p", "a:1", "IfNotPresent").await.unwrap_err();
        assert_eq!(e.reason, "ImagePullBackOff");
        assert_eq!(
            e.message,
            "Back-off pulling image \"a:1\": ErrImagePull: rpc error: code = NotFound desc = no such thing"
        );
        assert_eq!(bench.events().await, ["p spec.containers{app} Normal BackOff: Back-off pulling image \"a:1\""]);
        assert_eq!(pulls(), 1);
        assert_eq!(
            reason(&bench.ensure("other", "a:1", "IfNotPresent").await),
            "ErrImagePull",
            "another pod starts afresh"
        );
        for (wait, expected) in
            [(10, "ErrImagePull"), (10, "ImagePullBackOff"), (10, "ErrImagePull"), (39, "ImagePullBackOff")]
        {
            tokio::time::sleep(wait * SECOND).await;
            assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), expected, "after {wait} s more");
        }
        tokio::time::sleep(700 * SECOND).await;
        bench.runtime.registry("a:1", Pull::Succeeds(SECOND));
        assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ok");
    });
}

#[test]
fn serial_pulls_wait_in_line_and_parallel_ones_up_to_their_number() {
    for (serial, parallel_max, most) in [(true, None, 1), (true, Some(5), 1), (false, Some(2), 2), (false, None, 4)] {
        run(6, |kernel| async move {
            let bench = Bench::start(&kernel, Setup { serial, parallel_max, ..Setup::default() });
            let jobs: Vec<_> = (0..4).map(|n| bench.ensure_beside("p", &format!("i{n}:1"))).collect();
            settle().await;
            let view = bench.view();
            assert_eq!((view.pulling.len(), view.queued), (most, 4 - most));
            for job in jobs {
                assert!(job.await.unwrap().is_ok());
            }
            assert_eq!(bench.most_at_once(), most);
            assert_eq!(*bench.view(), ImageView::default());
            let waits = bench.events().await.iter().filter(|e| e.contains("in 1s (1s including")).count();
            assert_eq!(waits, most, "who waited says so");
        });
    }
}

#[test]
fn over_the_rate_is_a_failure_that_backs_off() {
    with_bench(Setup { qps: 1, burst: 2, serial: false, ..Setup::default() }, async |bench| {
        let jobs: Vec<_> = (0..3).map(|n| bench.ensure_beside("p", &format!("i{n}:1"))).collect();
        let mut failed = Vec::new();
        for (n, job) in jobs.into_iter().enumerate() {
            failed.extend(job.await.unwrap().err().map(|e| (n, e)));
        }
        // Which of the three comes last is not said: their records are read beside each other.
        let [(n, error)] = &failed[..] else { panic!("{failed:?}") };
        assert_eq!((error.reason.as_str(), error.message.as_str()), ("ErrImagePull", "pull QPS exceeded"));
        assert_eq!(reason(&bench.ensure("p", &format!("i{n}:1"), "IfNotPresent").await), "ImagePullBackOff");
        assert_eq!(bench.pulls().len(), 2);
    });
}

#[test]
fn pods_that_want_the_same_image_share_one_pull_and_its_failure() {
    with_bench(Setup { serial: false, ..Setup::default() }, async |bench| {
        bench.fails("shared-errimagepull:1", Code::Unknown, "bad");
        for expected in ["ok", "ErrImagePull"] {
            let image = format!("shared-{expected}:1").to_lowercase();
            let before = bench.pulls().len();
            let jobs: Vec<_> = (0..5).map(|n| bench.ensure_beside(&format!("p{n}"), &image)).collect();
            for job in jobs {
                assert_eq!(reason(&job.await.unwrap()), expected);
            }
            assert_eq!(bench.pulls().len() - before, 1);
            let events = bench.events().await;
            assert_eq!(events.len(), 10, "each pod is told of its own: {events:?}");
        }
        for n in 0..5 {
            let again = bench.ensure(&format!("p{n}"), "shared-errimagepull:1", "IfNotPresent").await;
            assert_eq!(reason(&again), "ImagePullBackOff", "each backs off by itself");
        }
    });
}

#[test]
fn a_pull_outlives_its_asker_and_its_manager() {
    with_bench(Setup::default(), async |bench| {
        bench.runtime.registry("big:1", Pull::Succeeds(100 * SECOND));
        let impatient = bench.wiring.inlet().ask(request("p", "big:1", "IfNotPresent"), 5 * SECOND).await;
        assert!(impatient.is_err());
        let patient = bench.ensure_beside("q", "big:1");
        settle().await;
        bench.manager.kill();
        tokio::time::sleep(SECOND).await;
        assert_eq!(bench.manager.info().generation, 1);
        assert_eq!(bench.running(), 1, "it goes on");
        assert_eq!(bench.view().pulling, ["big:1"], "and is still shown");
        assert_eq!(reason(&patient.await.unwrap()), "ok");
        assert_eq!(bench.pulls().len(), 1);
        assert_eq!(reason(&bench.ensure("p", "big:1", "IfNotPresent").await), "ok");
    });
}

#[test]
fn a_hung_pull_holds_up_nobody_who_needs_no_pull() {
    with_bench(Setup::default(), async |bench| {
        bench.runtime.registry("hung:1", Pull::Hangs);
        let _hung = bench.ensure_beside("p", "hung:1");
        settle().await;
        bench.put(&["there:1"]);
        let answer = bench.wiring.inlet().ask(request("q", "there:1", "IfNotPresent"), SECOND).await;
        assert!(answer.unwrap().is_ok());
    });
}

#[test]
fn a_leader_that_dies_is_replaced_by_a_follower() {
    for point in ["pull", "pulled"] {
        run(11, |kernel| async move {
            kernel.faults().add_text(&format!("image-manager: panic@{point}#1")).unwrap();
            let bench = Bench::start(&kernel, Setup::default());
            let first = bench.ensure_beside("p", "a:1");
            let second = bench.ensure_beside("q", "a:1");
            let (first, second) = (first.await.unwrap(), second.await.unwrap());
            // Which of the two leads is up to the pool's threads.
            let mut ends = [reason(&first), reason(&second)];
            ends.sort_unstable();
            assert_eq!(ends, ["ErrImagePull", "ok"], "{point}");
            assert_eq!(*bench.view(), ImageView::default(), "{point}: the slot is free again");
            assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ok", "{point}");
        });
    }
}

#[test]
fn a_panic_at_the_first_point_costs_one_answer() {
    run(12, |kernel| async move {
        kernel.faults().add_text("image-manager: panic@inspect#1").unwrap();
        let bench = Bench::start(&kernel, Setup::default());
        assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ErrImagePull");
        assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ok");
    });
}

#[test]
fn a_clock_that_is_set_changes_no_back_off() {
    for by_s in [-86_400, 86_400] {
        run(13, |kernel| async move {
            let bench = Bench::start(&kernel, Setup::default());
            bench.fails("a:1", Code::NotFound, "no such thing");
            assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ErrImagePull");
            kernel.clock().set_by(by_s * 1_000_000_000);
            assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ImagePullBackOff", "{by_s}");
            tokio::time::sleep(11 * SECOND).await;
            assert_eq!(reason(&bench.ensure("p", "a:1", "IfNotPresent").await), "ErrImagePull", "{by_s}");
        });
    }
}

#[test]
fn a_clock_that_is_set_back_takes_no_pull_for_too_many() {
    run(14, |kernel| async move {
        let bench = Bench::start(&kernel, Setup { qps: 1, burst: 1, ..Setup::default() });
        assert!(bench.ensure("p", "a:1", "IfNotPresent").await.is_ok());
        kernel.clock().set_by(-86_400 * 1_000_000_000);
        tokio::time::sleep(2 * SECOND).await;
        assert!(bench.ensure("p", "b:1", "IfNotPresent").await.is_ok());
    });
}
