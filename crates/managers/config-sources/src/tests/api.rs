//! The API source on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use actor::{Action, ActorRef, Kernel, Rule, When, testing};
use contract::Wiring;
use contract::board::ValueReader;
use contract::config_sources::{ApiSourceView, Source};
use contract::node::{NodeOrigin, NodeView};
use fakes::{FakeApi, MemoryJournal};
use model::Timestamp;
use model::core::Pod;
use model::pod;
use ports::api::ApiError;
use ports::journal::Journal;
use serde_json::{Value, json};

use super::rig::Sets;
use crate::api::{AfterBoot, ApiSource, Config, Deps, Policy};

struct Rig {
    kernel: Kernel,
    api: FakeApi,
    journal: Arc<MemoryJournal>,
    wiring: Wiring,
    view: ValueReader<ApiSourceView>,
    sets: Sets,
    source: ActorRef<ApiSource>,
}

const WAIT: Duration = Duration::from_secs(5);

impl Rig {
    fn new(kernel: &Kernel) -> Rig {
        Self::life(kernel, FakeApi::new(), Arc::default(), true)
    }

    fn life(kernel: &Kernel, api: FakeApi, journal: Arc<MemoryJournal>, store: bool) -> Rig {
        Self::boot(kernel, api, journal, store, "boot-1")
    }

    fn boot(kernel: &Kernel, api: FakeApi, journal: Arc<MemoryJournal>, store: bool, boot_id: &str) -> Rig {
        let wiring = Wiring::default();
        let sets = Sets::on(&wiring, Source::Api);
        let boot =
            Policy { after_boot: AfterBoot::Safe, max_age: Duration::from_secs(300), boot_id: boot_id.to_owned() };
        let config = Arc::new(Config { node_name: "n1".into(), store, wait: WAIT, boot });
        let deps = Deps { api: Arc::new(api.clone()), journal: journal.clone() };
        let source = fakes::start(kernel, &wiring, move |crew| ApiSource::new(crew, config.clone(), deps.clone()));
        let view = wiring.value();
        Rig { kernel: kernel.clone(), api, journal, wiring, view, sets, source }
    }

    /// The daemon ends and begins anew.
    async fn restart(self, store: bool) -> Rig {
        self.ended().await;
        Self::life(&self.kernel, self.api, self.journal, store)
    }

    async fn ended(&self) {
        self.source.kill();
        self.source.stop();
        self.source.stopped().await;
    }

    fn node_is_known(&self) {
        self.wiring.set(NodeView { origin: NodeOrigin::Api, ..NodeView::default() });
    }

    fn put(&self, name: &str, more: Value) -> Pod {
        let mut value = json!({"metadata": {"name": name, "namespace": "ns"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}});
        for (key, v) in more.as_object().unwrap() {
            value[key] = v.clone();
        }
        self.api.put(&serde_json::from_value::<Pod>(value).unwrap())
    }

    async fn work(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    fn count(&self) -> usize {
        self.sets.count()
    }

    /// Names in the last set.
    fn set(&self) -> Option<Vec<String>> {
        self.sets.last().map(|s| s.iter().map(|p| pod::name(p).to_owned()).collect())
    }

    fn last(&self) -> Vec<Arc<Pod>> {
        self.sets.last().unwrap_or_default()
    }

    fn lines(&self) -> usize {
        self.journal.keys("api-pods/").unwrap().len()
    }
}

/// Runs a test around a source that has handed over pod `a`.
fn with_a<F: Future<Output = ()>>(test: impl FnOnce(Rig) -> F) {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.put("a", json!({}));
        rig.work().await;
        test(rig).await;
    });
}

fn names(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|s| (*s).to_owned()).collect())
}

#[test]
fn the_source_waits_for_the_node_and_then_gives_full_sets() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.put("a", json!({}));
        rig.put("elsewhere", json!({"spec": {"nodeName": "n2", "containers": []}}));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((rig.count(), rig.api.lists().len()), (0, 0), "the node is not known");
        rig.node_is_known();
        rig.work().await;
        assert_eq!(rig.set(), names(&["a"]));
        rig.put("b", json!({}));
        rig.work().await;
        assert_eq!(rig.set(), names(&["a", "b"]));
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.work().await;
        assert_eq!(rig.set(), names(&["b"]));
        assert_eq!(*rig.view.get(), ApiSourceView { synced: true, from_store: false, pods: 1, error: None });
    });
}

#[test]
fn an_empty_list_is_an_empty_set() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.work().await;
        assert_eq!(rig.set(), names(&[]));
    });
}

#[test]
fn managed_fields_are_dropped() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        let fields = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}]);
        rig.put("a", json!({"metadata": {"name": "a", "namespace": "ns", "managedFields": fields}}));
        rig.work().await;
        assert_eq!(rig.last()[0].metadata.managed_fields, None);
        assert!(rig.last()[0].metadata.resource_version.is_some());
    });
}

#[test]
fn a_burst_makes_few_sets() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.work().await;
        let before = rig.count();
        for n in 0..110 {
            rig.put(&format!("p{n}"), json!({}));
        }
        rig.work().await;
        assert_eq!(rig.last().len(), 110);
        assert!(rig.count() - before <= 5, "{}", rig.count() - before);
    });
}

#[test]
fn a_name_that_is_taken_again_is_the_new_pod() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        let first = rig.put("a", json!({}));
        rig.work().await;
        rig.api.vanish::<Pod>(Some("ns"), "a");
        let second = rig.put("a", json!({}));
        rig.work().await;
        assert_ne!(first.metadata.uid, second.metadata.uid);
        assert_eq!(rig.last().iter().map(|p| p.metadata.uid.clone()).collect::<Vec<_>>(), [second.metadata.uid]);
        rig.work().await;
        assert_eq!(rig.lines(), 1);
    });
}

#[test]
fn a_broken_watch_is_told_and_what_changed_meanwhile_is_found() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.put("a", json!({}));
        rig.put("b", json!({}));
        rig.work().await;
        rig.api.unplug();
        rig.work().await;
        assert!(rig.view.get().error.is_some());
        assert_eq!(rig.set(), names(&["a", "b"]), "what was seen stands");
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((rig.set(), rig.view.get().error.clone()), (names(&["b"]), None));
    });
}

#[test]
fn a_compacted_history_costs_nothing() {
    with_a(|rig| async move {
        rig.api.hold_follows();
        rig.put("b", json!({}));
        rig.api.store(fakes::api::Store::compact);
        rig.api.calm();
        rig.api.cut_follows(ApiError::status(410, "Expired", "too old resource version"));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.set(), names(&["a", "b"]));
    });
}

#[test]
fn without_the_server_the_stored_pods_go_on_and_its_return_is_honoured() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        let a = rig.put("a", json!({}));
        rig.put("b", json!({}));
        rig.put(
            "s",
            json!({"metadata": {"name": "s", "namespace": "ns", "annotations": {"kubernetes.io/config.mirror": "x"}}}),
        );
        rig.work().await;
        assert_eq!((rig.last().len(), rig.lines()), (3, 2), "a mirror is not stored");

        let rig = rig.restart(true).await;
        rig.api.unplug();
        tokio::time::sleep(WAIT - Duration::from_secs(1)).await;
        assert_eq!(rig.count(), 0, "the server has its time");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.set(), names(&["a", "b"]));
        assert_eq!(*rig.view.get(), ApiSourceView { synced: false, from_store: true, pods: 2, error: None });
        let mut stored = Pod::clone(&rig.last()[0]);
        let stamp = stored.metadata.annotations.take().unwrap_or_default();
        assert_eq!(stamp[model::pod::CONFIG_SOURCE], "api");
        assert_eq!(stored, a, "spec, metadata and status");

        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.put("c", json!({}));
        rig.api.calm();
        rig.node_is_known();
        rig.work().await;
        assert_eq!(rig.set(), names(&["b", "c", "s"]));
        assert_eq!((rig.view.get().synced, rig.view.get().from_store), (true, false));
        rig.work().await;
        assert_eq!(rig.lines(), 2);
    });
}

/// After a boot that began so long after the server was last heard.
async fn after_boot(rig: Rig, later: Duration) -> Rig {
    rig.ended().await;
    rig.api.unplug();
    tokio::time::sleep(later).await;
    let rig = Rig::boot(&rig.kernel, rig.api, rig.journal, true, "boot-2");
    tokio::time::sleep(WAIT * 2).await;
    rig
}

#[test]
fn after_a_boot_pods_that_must_be_one_wait_for_the_server() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.put("plain", json!({}));
        let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u"}]);
        rig.put("web-0", json!({"metadata": {"name": "web-0", "namespace": "ns", "ownerReferences": owner}}));
        rig.work().await;
        // The lease is renewed for an hour while nothing happens to pods: the store is not old.
        for _ in 0..360 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let lease_renewed_at = Some(Timestamp(kernel.clock().unix_nanos()));
            rig.wiring.set(NodeView { origin: NodeOrigin::Api, lease_renewed_at, ..NodeView::default() });
        }
        let rig = after_boot(rig, Duration::from_secs(200)).await;
        assert_eq!(rig.set(), names(&["plain"]));
        assert_eq!(rig.lines(), 2, "the one that waits stays in the store");
        // The daemon is started again, still without a word of the server: it waits on.
        let rig = after_boot(rig, Duration::from_secs(10)).await;
        assert_eq!(rig.set(), names(&["plain"]));
        rig.api.calm();
        rig.node_is_known();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.set(), names(&["plain", "web-0"]));
        // And now it counts in this boot too.
        let rig = after_boot(rig, Duration::from_secs(10)).await;
        assert_eq!(rig.set(), names(&["plain", "web-0"]));
    });
}

#[test]
fn after_a_boot_that_came_late_all_stored_pods_wait() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.node_is_known();
        rig.put("plain", json!({}));
        rig.work().await;
        let rig = after_boot(rig, Duration::from_secs(301)).await;
        assert_eq!((rig.set(), rig.lines()), (None, 1));
    });
}

#[test]
fn a_server_that_answers_in_time_makes_the_store_silent() {
    with_a(|rig| async move {
        let rig = rig.restart(true).await;
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.put("b", json!({}));
        tokio::time::sleep(Duration::from_secs(3)).await;
        rig.node_is_known();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(rig.sets.all().iter().all(|s| s.len() == 1 && pod::name(&s[0]) == "b"));
    });
}

#[test]
fn an_empty_store_and_one_that_is_off_say_nothing() {
    for store in [true, false] {
        testing::run(1, |kernel| async move {
            let mut rig = Rig::new(&kernel);
            if !store {
                rig.node_is_known();
                rig.put("a", json!({}));
                rig.work().await;
                rig = rig.restart(false).await;
            }
            rig.api.unplug();
            rig.node_is_known();
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert_eq!(rig.count(), 0, "store {store}");
        });
    }
}

#[test]
fn damaged_entries_are_skipped_and_go_when_the_server_is_back() {
    with_a(|rig| async move {
        let rig = rig.restart(true).await;
        rig.api.unplug();
        for (uid, bytes) in [
            ("x", &b"{"[..]),
            ("y", b"{}"),
            ("z", br#"{"metadata":{"uid":"other","name":"n"},"spec":{"containers":[]}}"#),
        ] {
            rig.journal.save(&format!("api-pods/{uid}"), bytes).unwrap();
        }
        let rig = rig.restart(true).await;
        tokio::time::sleep(WAIT * 2).await;
        assert_eq!(rig.set(), names(&["a"]));
        rig.api.calm();
        rig.node_is_known();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.lines(), 1);
    });
}

#[test]
fn steps_of_a_status_are_not_worth_a_write() {
    with_a(|rig| async move {
        let read = || rig.journal.load(&rig.journal.keys("api-pods/").unwrap()[0]).unwrap();
        let before = read();
        rig.api.change::<Pod>(Some("ns"), "a", |p| p.status.get_or_insert_default().pod_ip = Some("10.0.0.7".into()));
        rig.work().await;
        assert_eq!(read(), before);
        rig.api.change::<Pod>(Some("ns"), "a", |p| p.status.get_or_insert_default().phase = Some("Failed".into()));
        rig.work().await;
        assert_ne!(read(), before);
    });
}

#[test]
fn a_store_that_cannot_be_written_is_written_when_it_can() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.journal.set_broken(true);
        rig.node_is_known();
        rig.put("a", json!({}));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.set(), names(&["a"]));
        rig.journal.set_broken(false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.lines(), 1);
    });
}

#[test]
fn a_write_that_panicked_is_not_a_write() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.journal.set_panics(true);
        rig.node_is_known();
        rig.put("a", json!({}));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((rig.set(), rig.lines()), (names(&["a"]), 0));
        rig.journal.set_panics(false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.lines(), 1);
    });
}

#[test]
fn a_store_that_cannot_be_read_at_first_is_read_when_it_can() {
    with_a(|rig| async move {
        rig.api.unplug();
        rig.journal.set_broken(true);
        let rig = rig.restart(true).await;
        tokio::time::sleep(WAIT * 4).await;
        assert_eq!(rig.set(), None);
        rig.journal.set_broken(false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.set(), names(&["a"]));
    });
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    for point in ["started", "steps", "hand-over", "read store", "store"] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            testing::run(1, |kernel| async move {
                let (actor, at) = ("api-source".to_owned(), point.to_owned());
                kernel.faults().add(Rule { actor, point: at, when: When::Nth(1), action: action.clone() });
                let rig = Rig::new(&kernel);
                rig.put("a", json!({}));
                rig.node_is_known();
                rig.work().await;
                rig.put("b", json!({}));
                tokio::time::sleep(Duration::from_secs(10)).await;
                assert_eq!(rig.kernel.faults().log().len(), 1, "{point} {action:?}");
                assert_eq!((rig.set(), rig.lines()), (names(&["a", "b"]), 2), "{point} {action:?}");
            });
        }
    }
}

#[test]
fn a_restart_of_the_source_alone_never_goes_back_to_the_store() {
    with_a(|rig| async move {
        rig.journal.set_broken(true);
        rig.put("b", json!({}));
        rig.work().await;
        rig.api.unplug();
        rig.journal.set_broken(false);
        let sets = rig.count();
        rig.source.kill();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.count(), sets, "the store does not know b, which runs");
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.set(), names(&["a", "b"]));
    });
}

#[test]
fn the_set_is_said_again_to_a_pod_manager_that_lost_it() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.sets.go_away();
        rig.node_is_known();
        rig.put("a", json!({}));
        rig.work().await;
        rig.sets.come_back();
        rig.work().await;
        rig.work().await;
        assert_eq!(rig.set(), names(&["a"]));
        let before = rig.count();
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert_eq!(rig.count(), before, "it has the set");
        rig.sets.lose();
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert_eq!((rig.count(), rig.set()), (before + 1, names(&["a"])));
    });
}

#[test]
fn what_is_handed_over_follows_the_changes_and_not_the_pods() {
    let handed_over = |pods: usize| {
        testing::run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            for n in 0..pods {
                rig.put(&format!("p{n}"), json!({}));
            }
            rig.node_is_known();
            rig.work().await;
            assert_eq!((rig.last().len(), rig.sets.named()), (pods, pods));
            for n in 0..5 {
                rig.api.change::<Pod>(Some("ns"), "p3", |p| p.metadata.generation = Some(n));
                rig.work().await;
            }
            rig.put("another", json!({}));
            rig.api.vanish::<Pod>(Some("ns"), "p1");
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!(rig.last().len(), pods);
            assert_eq!(rig.sets.named() - pods, 7);
        });
    };
    handed_over(10);
    handed_over(20);
}

#[test]
fn an_empty_list_of_a_server_that_lost_the_node_is_not_believed() {
    with_a(|rig| async move {
        assert_eq!(rig.set(), names(&["a"]));
        // Restored from nothing: neither the Node nor pods.
        rig.api.unplug();
        rig.work().await;
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(rig.set(), names(&["a"]));
        assert!(rig.view.get().error.as_deref().unwrap().contains("neither this node nor its pods"));
        assert_eq!(rig.lines(), 1);
        // With the Node its list counts.
        let node: model::core::Node = serde_json::from_value(json!({"metadata": {"name": "n1"}})).unwrap();
        rig.api.put(&node);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(rig.set(), names(&[]));
        assert_eq!((rig.view.get().error.clone(), rig.lines()), (None, 0));
    });
}

#[test]
fn a_server_that_lost_everything_and_is_given_pods_again_is_believed() {
    with_a(|rig| async move {
        rig.api.unplug();
        rig.work().await;
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.set(), names(&["a"]));
        rig.put("b", json!({}));
        rig.work().await;
        assert_eq!(rig.set(), names(&["b"]));
    });
}
