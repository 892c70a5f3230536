//! The client against [`FakeApiServer`], over real sockets. Times are short, as a paused clock and sockets do not go
//! together; nothing sleeps to wait for something.

use std::time::Duration;

use fake_api::FakeApiServer;
use fakes::FakeApi;
use futures::StreamExt;
use futures::stream::BoxStream;
use model::core::{ConfigMap, Pod};
use ports::api::{ApiServer, Followed, Kind, Object, Selection};
use serde_json::json;

use crate::kubeconfig::{Auth, Kubeconfig, Trust};
use crate::{ApiClient, Settings};

mod calls;
mod counts;
mod credentials;
mod tls;
mod traces;
mod watches;

/// Long enough for a loaded machine; nothing that works waits so long.
const SOON: Duration = Duration::from_secs(20);

fn kubeconfig(server: &FakeApiServer) -> Kubeconfig {
    Kubeconfig {
        server: server.url().parse().unwrap(),
        server_name: None,
        trust: Trust::Anyone,
        identity: None,
        auth: Auth::None,
        proxy: None,
    }
}

/// Short pauses.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.watch.pause_first = Duration::from_millis(10);
    settings.watch.pause_most = Duration::from_millis(40);
    settings
}

fn client(server: &FakeApiServer) -> ApiClient {
    ApiClient::new(&kubeconfig(server), settings()).unwrap()
}

async fn pair() -> (FakeApiServer, ApiClient) {
    let server = FakeApiServer::plain(FakeApi::new()).await;
    let client = client(&server);
    (server, client)
}

fn pod(name: &str) -> Pod {
    let value = json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] },
    });
    serde_json::from_value(value).unwrap()
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "default" }, "data": { "k": value } }))
        .unwrap()
}

fn pods() -> Selection {
    Selection { kind: Kind::Pod, namespace: None, field_selector: "spec.nodeName=n1".to_owned() }
}

fn maps() -> Selection {
    Selection { kind: Kind::ConfigMap, namespace: Some("default".to_owned()), field_selector: String::new() }
}

/// `=a,b`, `+a`, `-a`, `!`.
fn short(step: &Followed) -> String {
    let name = |o: &Object| match o {
        Object::Pod(p) => p.metadata.name.clone().unwrap(),
        Object::ConfigMap(m) => m.metadata.name.clone().unwrap(),
        other => format!("{other:?}"),
    };
    match step {
        Followed::All(all) => format!("={}", all.iter().map(name).collect::<Vec<_>>().join(",")),
        Followed::Applied(o) => format!("+{}", name(o)),
        Followed::Deleted(o) => format!("-{}", name(o)),
        Followed::Failed(_) => "!".to_owned(),
    }
}

async fn step(follow: &mut BoxStream<'static, Followed>) -> Followed {
    tokio::time::timeout(SOON, follow.next()).await.expect("a step comes soon").expect("a follow never ends")
}

async fn expect(follow: &mut BoxStream<'static, Followed>, wanted: &[&str]) {
    for wanted in wanted {
        assert_eq!(short(&step(follow).await), *wanted);
    }
}

/// Steps until one of that form comes.
async fn until(follow: &mut BoxStream<'static, Followed>, wanted: &str) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let found = short(&step(follow).await);
        if found == wanted {
            return seen;
        }
        seen.push(found);
        assert!(seen.len() < 200, "{wanted} never came: {seen:?}");
    }
}

/// Begins a follow and reads its first step.
async fn followed(client: &ApiClient, selection: Selection, first: &str) -> BoxStream<'static, Followed> {
    let mut follow = client.follow(selection);
    expect(&mut follow, &[first]).await;
    follow
}
