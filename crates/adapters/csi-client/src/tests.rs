//! Against a real driver, on real sockets.

use std::path::Path;
use std::time::{Duration, Instant};

use csi_api::registration::RegistrationStatus;
use csi_api::{CsiOutcome, v1};
use csi_driver::{Config, Driver, Effect, Rule};
use ports::csi::{CsiError, CsiNode};
use ports::grpc::Code;
use ports::plugin::PluginRegistration;

use crate::CsiClient;

mod kept;
mod nonsense;

const LIMIT: Duration = Duration::from_secs(20);

fn config(folder: &Path) -> Config {
    Config {
        folder: folder.join("driver"),
        registry: Some(folder.to_owned()),
        max_volumes: 7,
        topology: [("zone".to_owned(), "z".to_owned())].into(),
        ..Config::default()
    }
}

fn rules(folder: &Path, rules: &[(&str, Effect)]) {
    let rule = |(call, effect): &(&str, Effect)| Rule { call: (*call).to_owned(), times: None, effect: effect.clone() };
    let text = serde_json::to_vec(&rules.iter().map(rule).collect::<Vec<_>>()).unwrap();
    std::fs::write(folder.join("driver/control.json"), text).unwrap();
}

#[tokio::test]
async fn a_driver_says_what_it_is_and_hears_what_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let client = CsiClient::new();
    let registration = folder.path().join("dir.csi.bosun.test@reg.sock");
    let info = PluginRegistration::get_info(&client, &registration, LIMIT).await.unwrap();
    assert_eq!((info.r#type.as_str(), info.endpoint.as_str()), ("CSIPlugin", driver.socket().to_str().unwrap()));
    let status = RegistrationStatus { plugin_registered: false, error: "why".to_owned() };
    client.notify(&registration, status, LIMIT).await.unwrap();
    assert_eq!(driver.registered().await, Err("why".to_owned()));
    let node = CsiNode::get_info(&client, driver.socket(), LIMIT).await.unwrap();
    assert_eq!((node.node_id.as_str(), node.max_volumes_per_node), ("node", 7));
    assert_eq!(node.accessible_topology.unwrap().segments["zone"], "z");
    let can = client.get_capabilities(driver.socket(), LIMIT).await.unwrap();
    assert_eq!(can.capabilities.len(), 3);
}

#[tokio::test]
async fn codes_and_words_come_through_and_a_missing_driver_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    rules(folder.path(), &[("NodeGetCapabilities", Effect::Code(8))]);
    let client = CsiClient::new();
    let refused = client.get_capabilities(driver.socket(), LIMIT).await.unwrap_err();
    assert_eq!(refused, CsiError::status(Code::ResourceExhausted, "NodeGetCapabilities: told to"));
    let unknown =
        v1::NodeGetVolumeStatsRequest { volume_id: "x".into(), volume_path: "/".into(), ..Default::default() };
    let unknown = client.get_volume_stats(driver.socket(), unknown, LIMIT).await.unwrap_err();
    assert_eq!((unknown.code(), unknown.outcome()), (Some(Code::NotFound), CsiOutcome::Final));
    let socket = driver.socket().to_owned();
    drop(driver);
    let gone = client.get_capabilities(&socket, LIMIT).await.unwrap_err();
    assert_eq!((gone.code(), gone.outcome()), (Some(Code::Unavailable), CsiOutcome::Uncertain));
    let again = Driver::start(config(folder.path())).unwrap();
    rules(folder.path(), &[]);
    client.get_capabilities(again.socket(), LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_driver_that_hangs_costs_its_own_calls_only_and_they_end_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    rules(folder.path(), &[("NodeGetInfo", Effect::Hang)]);
    let client = CsiClient::new();
    let short = Duration::from_millis(300);
    let began = Instant::now();
    // More than have a place, and those without one have less patience.
    let patience = |n| if n < 32 { short } else { short / 2 };
    let hung = futures_of(40, |n| CsiNode::get_info(&client, driver.socket(), patience(n)));
    let beside =
        Driver::start(Config { name: "b".into(), folder: folder.path().join("b"), ..Config::default() }).unwrap();
    let (hung, beside) = tokio::join!(hung, CsiNode::get_info(&client, beside.socket(), LIMIT));
    beside.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let late = CsiError::status(Code::DeadlineExceeded, "context deadline exceeded");
    let (asked, waited): (Vec<_>, Vec<_>) = hung.into_iter().map(Result::unwrap_err).partition(|e| *e == late);
    assert_eq!((asked.len(), waited.len()), (32, 8));
    for one in waited {
        assert_eq!(one.outcome(), CsiOutcome::Transient, "the driver was never asked: {one}");
    }
    client.get_capabilities(driver.socket(), LIMIT).await.unwrap();
}

async fn futures_of<F: Future>(n: usize, make: impl Fn(usize) -> F) -> Vec<F::Output> {
    let mut all: Vec<_> = (0..n).map(|n| Box::pin(make(n))).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| match one.as_mut().poll(cx) {
            std::task::Poll::Ready(out) => {
                done.push(out);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn what_is_listened_to_by_nobody_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("deaf.sock");
    let _deaf = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let e = PluginRegistration::get_info(&CsiClient::new(), &socket, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(e.code, Code::DeadlineExceeded);
}
