use axum::response::{IntoResponse, Response};

use super::{Fake, refuse};
use crate::Command;
use crate::top::once;

pub(super) fn daemon(path: &str) -> Response {
    match path {
        "/v1/pods" => {
            r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"web","namespace":"shop","uid":"u1"},
            "spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}]}"#
                .into_response()
        }
        "/v1/actors" => r#"[{"name":"pod-worker/u1","state":"running","turns":4}]"#.into_response(),
        "/stats/summary?only_cpu_and_memory=true" => r#"{"node":{"nodeName":"n1"},"pods":[{"podRef":{"name":"web",
            "namespace":"shop","uid":"u1"},"cpu":{"time":"2026-01-01T00:00:00Z","usageNanoCores":5000000,
            "usageCoreNanoSeconds":9},"memory":{"workingSetBytes":1048576},"containers":null}]}"#
            .into_response(),
        _ => refuse(404, ""),
    }
}

#[tokio::test]
async fn one_look_is_enough_for_pods_when_the_daemon_has_rates() {
    let fake = Fake::start(daemon);
    let Command::Top(args) = fake.command("top pods -o json") else { panic!() };
    let view = once(&args).await.unwrap();
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["pods"][0]["cpuNanoCores"], 5_000_000);
    assert_eq!(json["pods"][0]["memoryWorkingSetBytes"], 1 << 20);
    assert_eq!(json["node"]["name"], "n1");
    assert_eq!(fake.asked(), ["/v1/pods", "/stats/summary?only_cpu_and_memory=true"]);
}

#[tokio::test]
async fn actors_are_looked_at_twice() {
    let fake = Fake::start(daemon);
    let Command::Top(args) = fake.command("top actors --once") else { panic!() };
    let view = once(&args).await.unwrap();
    assert_eq!(view.actors[0].turns_per_second, Some(0.0));
    assert_eq!(view.actors[0].pod.as_deref(), Some("shop/web"));
    assert_eq!(fake.asked(), ["/v1/pods", "/v1/actors", "/v1/pods", "/v1/actors"]);
}

#[tokio::test]
async fn pods_are_shown_without_figures_when_the_daemon_refuses_them() {
    let fake = Fake::start(|path| if path.starts_with("/stats") { refuse(500, "no cgroups") } else { daemon(path) });
    let Command::Top(args) = fake.command("top pods") else { panic!() };
    let view = once(&args).await.unwrap();
    assert_eq!((view.pods.len(), view.notes.as_slice()), (1, ["no figures: no cgroups".to_owned()].as_slice()));
}
