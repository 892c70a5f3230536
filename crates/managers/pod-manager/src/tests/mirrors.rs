//! Mirror pods.

use super::*;
use model::pod::{CONFIG_HASH, CONFIG_MIRROR, annotation};

fn static_pod(hash: &str, name: &str) -> Pod {
    let json = serde_json::json!({
        "metadata": { "name": name, "annotations": { CONFIG_HASH: hash } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": hash }] },
        "status": { "phase": "Pending" },
    });
    pod(hash, json)
}

fn setup() -> Setup {
    Setup { sources: [Source::Api, Source::File].into(), ..Setup::default() }
}

fn mirror(bench: &Bench, name: &str) -> Option<Pod> {
    bench.api.read::<Pod>(Some("default"), name)
}

/// What the source of the API would deliver now.
async fn deliver(bench: &Bench) {
    let all = bench.api.read_all::<Pod>(None);
    bench.set(Source::Api, &all).await;
}

#[test]
fn a_static_pod_gets_a_mirror_that_its_row_shows() {
    with_bench(setup(), async |bench| {
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        assert_eq!(mirror(&bench, "web-n1"), None, "whether there is one already is not known yet");
        bench.set(Source::Api, &[]).await;
        assert_eq!(mirror(&bench, "web-n1"), None, "the node is not known to the API yet");
        let node = bench.know_node(&[]);
        settle().await;
        assert_eq!(bench.phase("h1"), Some(WorkerPhase::Syncing));
        let made = mirror(&bench, "web-n1").unwrap();
        assert_eq!(annotation(&made, CONFIG_MIRROR), Some("h1"));
        assert_eq!(made.metadata.owner_references.as_ref().unwrap()[0].uid, node.metadata.uid.unwrap());
        let row = bench.pods.get(&"h1".into()).unwrap();
        assert_eq!(row.mirror.as_ref().unwrap().metadata.uid, made.metadata.uid);
        deliver(&bench).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.api.requests().len(), 1, "and it is left alone");
        let uid = made.metadata.uid.unwrap();
        assert_eq!(bench.phase(&uid), None, "a mirror never runs");
        assert!(bench.pods.get(&uid.as_str().into()).is_none());
    });
}

#[test]
fn a_mirror_that_a_user_deletes_comes_again() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        let first = mirror(&bench, "web-n1").unwrap();
        bench.api.user_deletes::<Pod>(Some("default"), "web-n1", Some(30)).unwrap();
        deliver(&bench).await;
        let second = mirror(&bench, "web-n1").unwrap();
        assert_ne!(first.metadata.uid, second.metadata.uid);
        let deletes = bench.api.requests_of("DELETE", "pods/web-n1");
        assert_eq!(deletes[0].body["gracePeriodSeconds"], 0);
        assert_eq!(deletes[0].body["preconditions"]["uid"], first.metadata.uid.unwrap());
        bench.api.vanish::<Pod>(Some("default"), "web-n1");
        deliver(&bench).await;
        assert!(mirror(&bench, "web-n1").is_some());
        assert_eq!(bench.phase("h1"), Some(WorkerPhase::Syncing), "the pod itself is not touched");
    });
}

/// Edge 22.
#[test]
fn a_mirror_that_a_user_resizes_changes_nothing() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        let mut patched = mirror(&bench, "web-n1").unwrap();
        let resources = serde_json::json!({ "requests": { "cpu": "1" } });
        patched.spec.as_mut().unwrap().containers[0].resources = serde_json::from_value(resources).unwrap();
        bench.heard();
        let before = bench.workers.get(&"h1".into()).unwrap();
        bench.set(Source::Api, &[patched.clone()]).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let row = bench.workers.get(&"h1".into()).unwrap();
        assert_eq!((&row.pod, &row.pending, &row.resizing), (&before.pod, &None, &None));
        let uid = patched.metadata.uid.unwrap();
        assert!(bench.pods.get(&uid.as_str().into()).is_none());
        let heard = bench.heard();
        assert!(!heard.iter().any(|word| word.contains("Resize")), "{heard:?}");
    });
}

#[test]
fn a_changed_manifest_replaces_the_mirror_when_its_pod_runs() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        let first = mirror(&bench, "web-n1").unwrap();
        bench.set(Source::File, &[static_pod("h2", "web-n1")]).await;
        assert_eq!(mirror(&bench, "web-n1").unwrap().metadata.uid, first.metadata.uid, "the old pod is being stopped");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let second = mirror(&bench, "web-n1").unwrap();
        assert_eq!(annotation(&second, CONFIG_MIRROR), Some("h2"));
    });
}

#[test]
fn an_orphaned_mirror_goes_after_its_pod() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        bench.set(Source::File, &[]).await;
        assert!(mirror(&bench, "web-n1").is_some(), "while the pod is being stopped");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(mirror(&bench, "web-n1"), None);
    });
}

#[test]
fn nothing_is_an_orphan_before_all_sources_have_spoken() {
    with_bench(setup(), async |bench| {
        let node = bench.know_node(&[]);
        let old = crate::mirrors::mirror_pod(&stamped(), &node).unwrap();
        bench.api.put(&old);
        deliver(&bench).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(mirror(&bench, "web-n1").is_some());
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(bench.api.requests().is_empty(), "the mirror of an earlier life of the daemon is good");
        assert!(bench.pods.get(&"h1".into()).unwrap().mirror.is_some());
    });
}

fn stamped() -> Pod {
    static_pod("h1", "web-n1")
}

#[test]
fn an_api_server_that_is_away_delays_the_mirror_and_nothing_else() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.api.lasting_trouble(Matching::any(), fakes::api::Trouble::Fail(unreachable()));
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(bench.phase("h1"), Some(WorkerPhase::Syncing));
        let tries = bench.api.requests().len();
        assert!((50..80).contains(&tries), "tried with pauses: {tries}");
        bench.api.calm();
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(mirror(&bench, "web-n1").is_some());
    });
}

#[test]
fn a_mirror_that_exists_already_is_taken_for_ours_if_it_is() {
    with_bench(setup(), async |bench| {
        let node = bench.know_node(&[]);
        let ours = bench.api.put(&crate::mirrors::mirror_pod(&static_pod("h1", "web-n1"), &node).unwrap());
        let foreign = bench.api.put(&pod(
            "x",
            serde_json::json!({ "metadata": { "name": "db-n1" },
            "spec": { "containers": [{ "name": "c" }] } }),
        ));
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1"), static_pod("h2", "db-n1")]).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let row = bench.pods.get(&"h1".into()).unwrap();
        assert_eq!(row.mirror.as_ref().unwrap().metadata.uid, ours.metadata.uid);
        assert_eq!(mirror(&bench, "db-n1").unwrap().metadata.uid, foreign.metadata.uid, "not ours to remove");
        assert!(bench.api.requests_of("DELETE", "").is_empty());
    });
}

#[test]
fn a_rebuilt_manager_still_knows_the_mirrors() {
    with_bench(setup(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[]).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        bench.api.forget_requests();
        bench.manager.kill();
        settle().await;
        deliver(&bench).await;
        bench.set(Source::File, &[static_pod("h1", "web-n1")]).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(bench.api.requests().is_empty());
        assert!(bench.pods.get(&"h1".into()).unwrap().mirror.is_some());
    });
}

#[test]
fn a_manager_that_dies_over_a_mirror_makes_it_in_its_next_life() {
    for rule in
        ["pod-manager: panic@before mirror#1", "pod-manager: kill@before mirror#1", "pod-manager: panic@merged#2"]
    {
        run(9, move |kernel| async move {
            kernel.faults().add_text(rule).unwrap();
            kernel.faults().enable();
            let bench = Bench::start(&kernel, setup());
            bench.know_node(&[]);
            let pods = [static_pod("h1", "web-n1")];
            // Sources say their sets again now and then.
            for _ in 0..3 {
                for (source, pods) in [(Source::Api, bench.api.read_all::<Pod>(None)), (Source::File, pods.to_vec())] {
                    let pods = pods.into_iter().map(Arc::new).collect();
                    let _lost_with_the_manager =
                        bench.wiring.ask(SetPods { source, pods, provisional: false, number: 0 }).await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            assert!(mirror(&bench, "web-n1").is_some(), "{rule}");
            assert!(bench.pods.get(&"h1".into()).unwrap().mirror.is_some(), "{rule}");
            assert_eq!(bench.api.requests_of("POST", "pods").len(), 1, "{rule}");
            assert_eq!(kernel.faults().log().len(), 1, "{rule}");
        });
    }
}
