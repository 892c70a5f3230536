//! Plugins and drivers that answer nonsense: it is told where users look, nothing is lost, and others go on.

use contract::plugin::PluginSocket;
use contract::volume::ListVolumes;
use csi_api::v1;
use fakes::{FakeDriver, PluginTrouble};
use model::k8s_openapi::api::storage::v1::CSINode;
use ports::grpc::Code;
use sim::{LIMIT, NODE_NAME, SimNode};

use crate::drivers::{self, DRIVER};
use crate::secs;
use crate::volumes::with_driver;

/// What no person can read: no text at all, one with control characters, one without an end.
fn words() -> [String; 3] {
    [String::new(), "\u{0}\u{1b}[2J\r\n\u{202e}%!s(<nil>)".to_owned(), "x".repeat(1 << 20)]
}

#[test]
fn a_pod_whose_driver_answers_nonsense_says_so_and_starts_when_that_ends() {
    let calls = ["NodeGetCapabilities", "NodeStageVolume", "NodePublishVolume", "NodeExpandVolume"];
    for (call, message) in calls.into_iter().zip(words().into_iter().cycle()) {
        sim::log_to_stderr();
        actor::testing::run(1, |kernel| async move {
            let node = with_driver(&kernel).await;
            let (socket, claims) = (drivers::socket(DRIVER), ["data".to_owned()]);
            node.world.plugins.trouble(&socket, call, Some(PluginTrouble::Fail(Code::Unknown, message)));
            drivers::attach(&node, &claims, &[]);
            node.until("FailedMount is told", LIMIT, |n| n.has_event("web", "FailedMount")).await;
            assert_eq!(
                (node.phase("web"), node.state("web", "app").as_str()),
                ("Pending".into(), "waiting:ContainerCreating")
            );
            let rows = node.wiring().ask(ListVolumes).await.unwrap();
            let errors: Vec<&str> = rows.iter().filter_map(|row| row.error.as_deref()).collect();
            assert!(errors.iter().any(|e| e.contains("rpc error: code = Unknown")), "{call}: {errors:?}");
            node.bind("other", serde_json::json!({ "containers": [{ "name": "app", "image": "app:1" }] }));
            node.until("a pod beside it starts", LIMIT, |n| n.is_ready("other")).await;
            node.world.plugins.trouble(&socket, call, None);
            node.until("it starts", secs(300), |n| n.is_ready("web")).await;
            drivers::volumes_are(&node, &claims).unwrap_or_else(|e| panic!("{call}: {e}"));
            node.delete("web");
            node.until("web is gone", secs(300), |n| n.is_gone("web")).await;
            let clean = |n: &SimNode| drivers::volumes_are(n, &[]).is_ok();
            assert!(node.holds_within(secs(300), clean).await, "{call}: {:?}", drivers::volumes_are(&node, &[]));
        });
    }
}

#[test]
fn a_plugin_that_says_nonsense_of_itself_is_told_why_it_is_not_registered() {
    let of = |change: fn(&mut FakeDriver)| {
        let mut driver = FakeDriver::driver("odd.example");
        change(&mut driver);
        driver
    };
    let no_handler = "no handler registered for plugin type: ";
    let table: Vec<(&str, FakeDriver, &str)> = vec![
        ("type", of(|d| d.info.r#type = "\u{0}".to_owned()), no_handler),
        ("no-type", of(|d| d.info.r#type = String::new()), no_handler),
        ("name", of(|d| d.info.name = "../../etc".to_owned()), "the name is no domain name"),
        ("no-name", of(|d| d.info.name = String::new()), "the name is empty"),
        ("long", of(|d| d.info.name = "x".repeat(1 << 20)), "no more than 63 characters"),
        ("endpoint", of(|d| d.info.endpoint = "tcp://1.2.3.4:5".to_owned()), "no absolute path of a unix socket"),
        ("version", of(|d| d.info.supported_versions = vec!["\u{202e}1.0".to_owned(); 1000]), "could not parse"),
        ("no-version", of(|d| d.info.supported_versions = Vec::new()), "an empty list for supported versions"),
    ];
    sim::log_to_stderr();
    actor::testing::run(1, |kernel| async move {
        let node = with_driver(&kernel).await;
        for (name, driver, _) in &table {
            drivers::comes_as(&node, name, driver.clone());
        }
        let mut odd = FakeDriver::driver("limits.example");
        odd.node.max_volumes_per_node = i64::MIN;
        odd.node.accessible_topology = Some(v1::Topology::default());
        drivers::comes_as(&node, "limits", odd);
        for (name, _, why) in &table {
            let socket = drivers::socket(name);
            node.until("it is told", LIMIT, |n| !n.world.plugins.told(&socket).is_empty()).await;
            let told = node.world.plugins.told(&socket).remove(0);
            assert!(!told.plugin_registered && told.error.contains(why), "{name}: {}", told.error);
            let row = node.wiring().board::<PluginSocket>().get(&socket.display().to_string()).unwrap();
            assert!(
                row.registered_at.is_none() && row.error.as_ref().is_some_and(|e| e.contains(why)),
                "{name}: {row:?}"
            );
        }
        let registered = |n: &SimNode| {
            let object = n.api().read::<CSINode>(None, NODE_NAME);
            let mut found: Vec<_> = object.into_iter().flat_map(|o| o.spec.drivers).collect();
            found.sort_by(|a, b| a.name.cmp(&b.name));
            found.into_iter().map(|d| (d.name, d.allocatable.and_then(|a| a.count))).collect::<Vec<_>>()
        };
        let wanted = [("limits.example".to_owned(), None), (DRIVER.to_owned(), None)];
        node.until("the sane one is registered, without a limit", LIMIT, |n| registered(n) == wanted).await;
        let claims = ["data".to_owned()];
        drivers::attach(&node, &claims, &[]);
        node.until("its volume can be had", LIMIT, |n| n.is_ready("web")).await;
    });
}
