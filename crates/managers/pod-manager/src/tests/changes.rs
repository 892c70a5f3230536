//! Sources that say what changed.

use super::*;
use contract::pod_manager::ChangesTaken::{SetNeeded, Taken};

async fn set(bench: &Bench, number: u64, pods: &[Pod]) {
    let pods = pods.iter().cloned().map(Arc::new).collect();
    bench.wiring.ask(SetPods { source: Source::Api, pods, provisional: false, number }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn change(bench: &Bench, [base, number]: [u64; 2], changed: &[Pod], gone: &[&str]) -> ChangesTaken {
    let changed = changed.iter().cloned().map(Arc::new).collect();
    let gone = gone.iter().map(|uid| PodUid::from(*uid)).collect();
    let change = ChangePods { source: Source::Api, base, number, changed, gone };
    let taken = bench.wiring.ask(change).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    taken
}

fn relabelled(uid: &str) -> Pod {
    let mut pod = plain(uid);
    pod.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    pod
}

#[test]
fn changes_touch_their_pods_only() {
    with_bench(Setup::default(), async |bench| {
        set(&bench, 7, &[plain("u1"), plain("u2"), plain("u3")]).await;
        bench.heard();
        assert_eq!(change(&bench, [7, 8], &[plain("u4"), relabelled("u2")], &["u1"]).await, Taken);
        assert_eq!(bench.heard(), ["hold u4", "worker u1 kill None None", "worker u4 create", "worker u2 update"]);
        assert_eq!(change(&bench, [7, 8], &[plain("u4"), relabelled("u2")], &["u1"]).await, Taken, "said twice");
        assert_eq!(change(&bench, [8, 8], &[], &[]).await, Taken, "asked");
        assert_eq!(change(&bench, [8, 9], &[relabelled("u2")], &[]).await, Taken, "nothing new");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.heard(), ["release u1"]);
        assert_eq!((bench.phase("u1"), bench.phase("u3")), (None, Some(WorkerPhase::Syncing)));
    });
}

#[test]
fn a_manager_that_has_another_set_asks_for_the_whole() {
    with_bench(Setup::default(), async |bench| {
        assert_eq!(change(&bench, [0, 0], &[], &[]).await, SetNeeded, "none");
        set(&bench, 7, &[plain("u1")]).await;
        assert_eq!(change(&bench, [6, 9], &[plain("u2")], &[]).await, SetNeeded, "another");
        assert_eq!(bench.phase("u2"), None);
        bench.manager.kill();
        settle().await;
        assert_eq!(change(&bench, [7, 8], &[plain("u2")], &[]).await, SetNeeded, "rebuilt");
        set(&bench, 0, &[plain("u1")]).await;
        assert_eq!(change(&bench, [0, 0], &[], &[]).await, SetNeeded, "a set that no changes follow");
    });
}

#[test]
fn what_was_set_aside_is_asked_for_again() {
    run(43, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        set(&bench, 1, &[plain("u1")]).await;
        kernel.faults().enable();
        kernel.faults().add_text("pod-manager: panic@for:bad").unwrap();
        let mut number = 1;
        for _ in 0..4 {
            let changed = [Arc::new(plain("bad"))].into();
            let change = ChangePods { source: Source::Api, base: number, number: number + 1, changed, gone: vec![] };
            match bench.wiring.ask(change).await {
                Ok(Taken) => number += 1,
                Ok(SetNeeded) | Err(_) => {
                    let pods = [plain("u1"), plain("bad")].map(Arc::new).into();
                    let set = SetPods { source: Source::Api, pods, provisional: false, number: number + 1 };
                    if bench.wiring.ask(set).await.is_ok() {
                        number += 1;
                    }
                }
            }
        }
        assert_eq!(bench.phase("bad"), None);
        assert_eq!(change(&bench, [number, number], &[], &[]).await, SetNeeded, "it lacks one");
        kernel.faults().clear();
        tokio::time::sleep(Duration::from_secs(300)).await;
        set(&bench, 99, &[plain("u1"), plain("bad")]).await;
        assert_eq!(bench.phase("bad"), Some(WorkerPhase::Syncing));
        assert_eq!(change(&bench, [99, 99], &[], &[]).await, Taken);
    });
}

#[test]
fn a_mirror_that_went_is_made_again() {
    run(44, |kernel| async move {
        let sources = [Source::Api, Source::File].into();
        let bench = Bench::start(&kernel, Setup { sources, ..Setup::default() });
        bench.know_node(&[]);
        let json = serde_json::json!({ "metadata": { "name": "web-n1", "annotations": { model::pod::CONFIG_HASH: "h1" } },
            "spec": { "containers": [{ "name": "c" }] } });
        set(&bench, 1, &[]).await;
        bench.set(Source::File, &[pod("h1", json)]).await;
        let read = || bench.api.read::<Pod>(Some("default"), "web-n1");
        let made = read().expect("a mirror");
        assert_eq!(change(&bench, [1, 2], std::slice::from_ref(&made), &[]).await, Taken);
        bench.api.vanish::<Pod>(Some("default"), "web-n1");
        let uid = made.metadata.uid.clone().unwrap();
        assert_eq!(change(&bench, [2, 3], &[], &[&uid]).await, Taken);
        assert_ne!(read().expect("another mirror").metadata.uid, made.metadata.uid);
    });
}
