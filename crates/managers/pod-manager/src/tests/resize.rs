//! Resizes of pods that run: who gets what, and what is written down.

use std::path::Path;

use super::*;
use ports::host::HostFs;

mod trouble;

fn sized(uid: &str, cpu: &str, priority: i32, generation: i64) -> Pod {
    let mut pod = asking(uid, cpu, priority);
    pod.metadata.generation = Some(generation);
    pod
}

/// CPU that the pod of a worker has.
fn has(bench: &Bench, uid: &str) -> String {
    let row = bench.workers.get(&uid.into()).unwrap();
    let pod = row.pod.clone().unwrap();
    serde_json::to_value(&pod.spec.as_ref().unwrap().containers[0].resources).unwrap()["requests"]["cpu"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn pending(bench: &Bench, uid: &str) -> Option<(&'static str, String)> {
    let of = |p: &PendingResize| (p.reason(), p.message.clone());
    let row = bench.pods.get(&uid.into()).unwrap();
    assert_eq!(row.pending, bench.workers.get(&uid.into()).unwrap().pending);
    row.pending.as_ref().map(of)
}

fn events(bench: &Bench) -> Vec<String> {
    let of = |w: &String| Some(w.strip_prefix("event ")?.split(' ').next()?.to_owned());
    bench.heard().iter().filter_map(of).collect()
}

fn file(bench: &Bench, name: &str) -> serde_json::Value {
    let bytes = bench.disk.read_file(Path::new(name), 1 << 20).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_str(file["data"].as_str().unwrap()).unwrap()
}

const NO_ROOM: &str = "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000";

#[test]
fn what_fits_is_granted_and_written_down_before_the_worker_hears_of_it() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1)]).await;
        bench.heard();
        bench.set(Source::Api, &[sized("u1", "2", 0, 2)]).await;
        assert_eq!((has(&bench, "u1"), pending(&bench, "u1")), ("2".to_owned(), None));
        assert_eq!(events(&bench), ["ResizeStarted"]);
        let entry = file(&bench, "/r/allocated_pods_state");
        assert_eq!(entry["entries"]["u1"]["ContainerResources"]["c"]["requests"]["cpu"], "2");
        bench.set(Source::Api, &[sized("u1", "2", 0, 2)]).await;
        assert_eq!(events(&bench), Vec::<String>::new());
    });
}

/// Edge 24.
#[test]
fn a_resize_waits_until_another_pod_has_gone() {
    with_bench(Setup::default(), async |bench| {
        let other = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1), other.clone()]).await;
        bench.heard();
        bench.set(Source::Api, &[sized("u1", "1500m", 0, 2), other.clone()]).await;
        assert_eq!(has(&bench, "u1"), "500m", "not before it is granted");
        assert_eq!(pending(&bench, "u1"), Some(("Deferred", NO_ROOM.to_owned())));
        assert_eq!(events(&bench), ["ResizeDeferred"]);
        // What else changes of it comes through.
        let mut relabelled = sized("u1", "1500m", 0, 2);
        relabelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        bench.set(Source::Api, &[relabelled.clone(), other]).await;
        let row = bench.workers.get(&"u1".into()).unwrap();
        assert_eq!(row.pod.as_ref().unwrap().metadata.labels, relabelled.metadata.labels);
        assert_eq!((has(&bench, "u1"), events(&bench)), ("500m".to_owned(), Vec::new()));
        bench.set(Source::Api, &[relabelled]).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!((has(&bench, "u1"), pending(&bench, "u1")), ("1500m".to_owned(), None));
        assert_eq!(events(&bench), ["ResizeStarted"]);
    });
}

#[test]
fn a_wish_that_is_taken_back_waits_no_more() {
    with_bench(Setup::default(), async |bench| {
        let other = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1), other.clone()]).await;
        bench.set(Source::Api, &[sized("u1", "1500m", 0, 2), other.clone()]).await;
        assert!(pending(&bench, "u1").is_some());
        bench.set(Source::Api, &[sized("u1", "500m", 0, 3), other]).await;
        assert_eq!((has(&bench, "u1"), pending(&bench, "u1")), ("500m".to_owned(), None));
    });
}

/// Order of 1.12.
#[test]
fn what_takes_nothing_comes_first() {
    with_bench(Setup::default(), async |bench| {
        let of = |a, b| [sized("u1", a, 1000, 1), sized("u2", b, 0, 1)];
        bench.set(Source::Api, &of("1", "1")).await;
        bench.heard();
        bench.set(Source::Api, &of("1500m", "500m")).await;
        assert_eq!((has(&bench, "u1"), has(&bench, "u2")), ("1500m".to_owned(), "500m".to_owned()));
        assert_eq!(events(&bench).iter().filter(|e| *e == "ResizeStarted").count(), 2);
    });
}

#[test]
fn a_manager_that_is_rebuilt_knows_what_is_granted() {
    with_bench(Setup::default(), async |bench| {
        let (one, other) = (sized("u1", "1500m", 0, 2), asking("u2", "1", 0));
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1), other.clone()]).await;
        bench.set(Source::Api, &[one.clone(), other.clone()]).await;
        bench.heard();
        bench.manager.kill();
        settle().await;
        bench.set(Source::Api, &[one.clone(), other]).await;
        assert_eq!(
            (has(&bench, "u1"), pending(&bench, "u1")),
            ("500m".to_owned(), Some(("Deferred", NO_ROOM.to_owned())))
        );
        assert_eq!(events(&bench), Vec::<String>::new(), "it was told");
        bench.set(Source::Api, &[one]).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(has(&bench, "u1"), "1500m");
    });
}

/// What changed while no daemon ran is not the pod's own.
/// Edge 28.
#[test]
fn a_daemon_goes_on_with_what_pods_were_granted() {
    run(1, async |kernel| {
        let setup = Setup::default();
        let bench = Bench::start(&kernel, setup);
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1), asking("u2", "1", 0)]).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let written = file(&bench, "/r/allocated_pods_state");
        assert_eq!(written["entries"].as_object().unwrap().len(), 2, "new pods are written down soon");
        let next = Bench::start_on(&kernel, Setup::default(), bench.disk.clone());
        next.set(Source::Api, &[sized("u1", "1500m", 0, 2), asking("u2", "1", 0)]).await;
        assert_eq!(
            (has(&next, "u1"), pending(&next, "u1")),
            ("500m".to_owned(), Some(("Deferred", NO_ROOM.to_owned())))
        );
        assert_eq!(next.rejection("u1"), None);
    });
}

#[test]
fn nothing_is_granted_that_cannot_be_written_down() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1)]).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        bench.heard();
        bench.disk.trouble(Path::new("/r"), fakes::files::FileTrouble::FailWrites(fakes::files::Errno::NoSpc));
        bench.set(Source::Api, &[sized("u1", "1", 0, 2)]).await;
        assert_eq!((has(&bench, "u1"), events(&bench)), ("500m".to_owned(), Vec::new()));
        bench.disk.calm_at(Path::new("/r"));
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!((has(&bench, "u1"), events(&bench)), ("1".to_owned(), vec!["ResizeStarted".to_owned()]));
    });
}

/// The next daemon must not take it for what the pod has.
#[test]
fn a_wish_that_nobody_could_write_down_is_written_when_the_disk_can() {
    run(1, async |kernel| {
        let bench = Bench::start(&kernel, Setup::default());
        let (before, other) = (sized("u1", "500m", 0, 1), asking("u2", "1", 0));
        bench.set(Source::Api, &[before, other.clone()]).await;
        bench.disk.trouble(Path::new("/r"), fakes::files::FileTrouble::FailWrites(fakes::files::Errno::NoSpc));
        bench.set(Source::Api, &[sized("u1", "1500m", 0, 2), other.clone()]).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        bench.disk.calm_at(Path::new("/r"));
        tokio::time::sleep(Duration::from_secs(11)).await;
        let entries = file(&bench, "/r/allocated_pods_state");
        assert_eq!(entries["entries"]["u1"]["ContainerResources"]["c"]["requests"]["cpu"], "500m");
        let next = Bench::start_on(&kernel, Setup::default(), bench.disk.clone());
        next.set(Source::Api, &[sized("u1", "1500m", 0, 2), other]).await;
        assert_eq!(has(&next, "u1"), "500m");
    });
}

#[test]
fn a_critical_pod_makes_others_end_for_its_growth() {
    with_bench(Setup::default(), async |bench| {
        let critical = model::pod::SYSTEM_CRITICAL_PRIORITY;
        let other = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", critical, 1), other.clone()]).await;
        bench.heard();
        bench.set(Source::Api, &[sized("u1", "1500m", critical, 2), other]).await;
        assert_eq!(has(&bench, "u1"), "500m");
        assert_eq!(bench.phase("u2"), Some(WorkerPhase::Terminating));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(has(&bench, "u1"), "1500m");
        assert_eq!(events(&bench), ["Preempting", "ResizeDeferred", "ResizeStarted"]);
    });
}

/// The daemon dies when the grant is written down and the worker knows nothing of it yet.
#[test]
fn a_grant_that_nobody_heard_of_is_repeated() {
    run(1, async |kernel| {
        let bench = Bench::start(&kernel, Setup::default());
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1)]).await;
        bench.set(Source::Api, &[sized("u1", "1500m", 0, 2)]).await;
        let actuated = file(&bench, "/r/actuated_pods_state");
        assert_eq!(actuated["entries"]["u1"]["ContainerResources"]["c"]["requests"]["cpu"], "500m", "not yet");
        let next = Bench::start_on(&kernel, Setup::default(), bench.disk.clone());
        next.set(Source::Api, &[sized("u1", "1500m", 0, 2), asking("u2", "1", 0)]).await;
        assert_eq!(has(&next, "u1"), "1500m");
        assert_eq!(next.rejection("u2"), Some("OutOfcpu".to_owned()), "the room is taken");
        let words = next.heard();
        let of_worker: Vec<&String> = words.iter().filter(|w| w.starts_with("worker u1")).collect();
        assert_eq!(of_worker, ["worker u1 create behind"], "the worker sees a resize");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let last = Bench::start_on(&kernel, Setup::default(), next.disk.clone());
        last.set(Source::Api, &[sized("u1", "1500m", 0, 2)]).await;
        assert_eq!(events(&last), Vec::<String>::new(), "it has come to its end");
    });
}
