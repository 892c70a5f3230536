//! A reboot while the API server is away.

use super::*;
use crate::SealedCache;
use fakes::MemoryJournal;
use model::Timestamp;
use ports::journal::Journal;

struct Machine {
    dir: tempfile::TempDir,
    journal: Arc<MemoryJournal>,
    api: FakeApi,
}

impl Machine {
    fn new(kernel: &Kernel) -> Self {
        let wall = i128::from(kernel.clock().unix_nanos());
        let api = FakeApi::at(model::k8s_openapi::jiff::Timestamp::from_nanosecond(wall).unwrap());
        Self { dir: tempfile::tempdir().unwrap(), journal: Arc::default(), api }
    }

    /// A daemon with nothing in its memory.
    fn boot(&self, kernel: &Kernel, strategy: Strategy) -> Store {
        let key_file = self.dir.path().join("bosun/objects.key");
        let sealed =
            SealedCache::new(self.journal.clone(), Arc::new(fakes::LinuxFs), kernel.effects("object-store"), key_file);
        let config = Arc::new(Config { strategy, ..Config::default() });
        Store::of(kernel, &self.api, Some(Arc::new(self.api.clone())), config, ObjectCache::persistent(sealed))
    }

    fn lines(&self) -> Vec<String> {
        self.journal.keys("object/").unwrap()
    }
}

/// Enough for what is written beside the actor.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(15)).await;
}

#[test]
fn a_node_that_starts_without_the_server_has_what_its_pods_used() {
    run(1, |kernel| async move {
        for strategy in [Strategy::Watch, Strategy::Get, Strategy::Cache] {
            let machine = Machine::new(&kernel);
            machine.api.put(&config_map("app", "one"));
            let json = serde_json::json!({ "metadata": { "name": "web", "namespace": "ns" },
                "spec": { "clusterIP": "10.0.0.2", "ports": [{ "port": 80 }] } });
            machine.api.put(&serde_json::from_value::<Service>(json).unwrap());
            let account = serde_json::json!({ "metadata": { "name": "builder", "namespace": "ns" } });
            machine.api.put(&serde_json::from_value::<ServiceAccount>(account).unwrap());
            let pod = Arc::new(machine.api.put(&*pod("u1", "app")));
            let store = machine.boot(&kernel, strategy);
            store.hold(&pod).await;
            assert_eq!(store.config_map("app").await.unwrap(), "one");
            let token = store.token(&pod).await.unwrap();
            a_while().await;
            store.actor.stop();

            machine.api.unplug();
            let store = machine.boot(&kernel, strategy);
            store.hold(&pod).await;
            assert_eq!(store.config_map("app").await.unwrap(), "one", "{strategy:?}");
            assert_eq!(store.token(&pod).await.unwrap().text, token.text, "{strategy:?}");
            let services = store.wiring.ask(FetchServices { namespace: "ns".to_owned() }).await.unwrap();
            assert_eq!(services.unwrap().len(), 1, "{strategy:?}");
            tokio::time::sleep(Duration::from_secs(7200)).await;
            let late = store.token(&pod).await.unwrap();
            assert_eq!(late.text, token.text, "nobody could be asked with a better one");
            assert!(late.refresh_at > Timestamp(kernel.clock().unix_nanos()));

            machine.api.put(&config_map("app", "two"));
            machine.api.calm();
            tokio::time::sleep(Duration::from_secs(70)).await;
            assert_eq!(store.config_map("app").await.unwrap(), "two", "{strategy:?}");
            assert_ne!(store.token(&pod).await.unwrap().text, token.text, "{strategy:?}");
            store.actor.stop();
        }
    });
}

#[test]
fn what_the_server_refuses_is_not_given_on() {
    run(2, |kernel| async move {
        let machine = Machine::new(&kernel);
        machine.api.put(&config_map("app", "one"));
        let store = machine.boot(&kernel, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        a_while().await;
        store.actor.stop();
        let refuse = ApiError::status(403, "Forbidden", "no relationship found");
        machine.api.lasting_trouble(Matching::of("GET", "configmaps"), Trouble::Fail(refuse.clone()));
        let store = machine.boot(&kernel, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        let answer = store.config_map("app").await;
        assert_eq!(text(answer), "failed to sync configmap cache: timed out waiting for the condition");
        store.actor.stop();

        machine.api.calm();
        machine.api.unplug();
        let store = machine.boot(&kernel, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        machine.api.calm();
        machine.api.lasting_trouble(Matching::of("GET", "configmaps"), Trouble::Fail(refuse));
        a_while().await;
        assert!(store.config_map("app").await.is_err(), "the server is back, and refuses");
        assert_eq!(store.version("app"), None);
    });
}

#[test]
fn an_object_that_was_deleted_and_a_pod_that_is_gone_leave_no_lines() {
    run(3, |kernel| async move {
        let machine = Machine::new(&kernel);
        machine.api.put(&config_map("app", "one"));
        machine.api.put(&config_map("other", "two"));
        let store = machine.boot(&kernel, Strategy::Watch);
        let (a, b) = (pod("a", "app"), pod("b", "other"));
        store.hold(&a).await;
        store.hold(&b).await;
        a_while().await;
        assert!(machine.lines().contains(&"object/configmap/ns/app".to_owned()));
        machine.api.vanish::<ConfigMap>(Some("ns"), "app");
        a_while().await;
        assert!(!machine.lines().contains(&"object/configmap/ns/app".to_owned()));
        store.release(&b).await;
        a_while().await;
        assert!(machine.lines().contains(&"object/configmap/ns/other".to_owned()), "for a while, as it is followed");
        tokio::time::sleep(Duration::from_secs(60)).await;
        a_while().await;
        assert!(!machine.lines().contains(&"object/configmap/ns/other".to_owned()));
    });
}

#[test]
fn lines_of_pods_that_went_while_the_daemon_was_away_are_swept() {
    run(4, |kernel| async move {
        let machine = Machine::new(&kernel);
        machine.api.put(&config_map("app", "one"));
        machine.api.put(&config_map("other", "two"));
        let store = machine.boot(&kernel, Strategy::Watch);
        store.hold(&pod("a", "app")).await;
        store.hold(&pod("b", "other")).await;
        a_while().await;
        store.actor.stop();
        let store = machine.boot(&kernel, Strategy::Watch);
        store.hold(&pod("a", "app")).await;
        tokio::time::sleep(Duration::from_secs(9 * 60)).await;
        assert!(machine.lines().contains(&"object/configmap/ns/other".to_owned()));
        tokio::time::sleep(Duration::from_secs(2 * 60)).await;
        a_while().await;
        let lines = machine.lines();
        assert!(lines.contains(&"object/configmap/ns/app".to_owned()), "{lines:?}");
        assert!(!lines.contains(&"object/configmap/ns/other".to_owned()), "{lines:?}");
    });
}
