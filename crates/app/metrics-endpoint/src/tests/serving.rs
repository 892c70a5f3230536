use std::io::Read;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use prost::Message;
use tower::ServiceExt;

use super::node;
use crate::encode::protobuf::Family;
use crate::{Deps, router};

/// Status, content type, body.
async fn ask(deps: &Deps, method: &str, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = router(deps.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let kind = answer.headers().get("content-type").map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = answer.status();
    (status, kind, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

async fn text(deps: &Deps, path: &str) -> String {
    let (status, kind, body) = ask(deps, "GET", path, &[]).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8"));
    String::from_utf8(body).unwrap()
}

#[test]
fn every_computed_family_is_there_when_there_is_something_to_tell() {
    actor::testing::run(1, |kernel| async move {
        let text = text(&node(&kernel), "/metrics").await;
        for line in [
            "kubelet_node_name{node=\"n1\"} 1",
            "kubelet_running_pods 1",
            "kubelet_running_containers{container_state=\"exited\"} 2",
            "kubelet_running_containers{container_state=\"running\"} 1",
            "kubelet_desired_pods{static=\"\"} 1",
            "kubelet_desired_pods{static=\"true\"} 0",
            "kubelet_active_pods{static=\"\"} 1",
            "kubelet_working_pods{config=\"runtime_only\",lifecycle=\"terminated\",static=\"unknown\"} 0",
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/empty-dir\",state=\"actual_state_of_world\"} 1",
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/empty-dir\",state=\"desired_state_of_world\"} 2",
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/csi:d.example\",state=\"actual_state_of_world\"} 2",
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/csi:d.example\",state=\"desired_state_of_world\"} 5",
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/nfs\",state=\"actual_state_of_world\"} 1",
            "kubelet_volume_stats_health_status_abnormal{namespace=\"shop\",persistentvolumeclaim=\"data\"} 1",
            "kubelet_volume_stats_used_bytes{namespace=\"shop\",persistentvolumeclaim=\"data\"} 4",
            "kubelet_container_log_filesystem_used_bytes{container=\"app\",namespace=\"shop\",pod=\"web\",uid=\"u1\"} 7",
            "kubelet_certificate_manager_client_ttl_seconds 3600",
            "kubelet_certificate_manager_server_ttl_seconds +Inf",
            "kubernetes_feature_enabled{name=\"ImageVolume\",stage=\"BETA\"} 1",
            "# TYPE process_cpu_seconds_total counter",
            "# TYPE kubelet_pod_start_duration_seconds histogram",
            "kubelet_pleg_discard_events 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\nin\n{text}");
        }
        for name in ["process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds", "go_threads"] {
            let value = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
            assert!(value.is_some_and(|v| v.parse::<f64>().unwrap() > 0.0), "{name} in\n{text}");
        }
    });
}

#[test]
fn what_is_not_managed_or_not_known_is_absent_and_not_zero() {
    actor::testing::run(1, |kernel| async move {
        let mut deps = node(&kernel);
        deps.client_certificate_managed = false;
        deps.serving_certificate_managed = false;
        deps.usage = None;
        deps.volumes = Arc::new(|| Box::pin(std::future::pending()));
        let text = text(&deps, "/metrics").await;
        for name in [
            "kubelet_certificate_manager_client_ttl",
            "kubelet_certificate_manager_server_ttl",
            "kubelet_volume_stats",
            "volume_manager_total_volumes",
        ] {
            assert!(!text.contains(name), "{name}");
        }
    });
}

#[test]
fn pod_workers_share_one_row_and_their_counters_do_not_fall_when_one_ends() {
    struct Idle;
    impl actor::Actor for Idle {
        type Context = actor::Ctx<Self>;
        fn started(&mut self, ctx: &mut actor::Ctx<Self>) {
            ctx.after(std::time::Duration::ZERO, |_, _| {});
        }
    }
    actor::supervised!(Idle);
    actor::testing::run(1, |kernel| async move {
        let group = kernel.group("workers", actor::Policy::default());
        let make = |name: &str| kernel.spawn(actor::Spec::new(name.to_owned()).group(&group), |_| Idle);
        let (one, _two) = (make("pod-worker/a"), make("pod-worker/b"));
        actor::testing::settle().await;
        let deps = node(&kernel);
        let turns = |text: &str| -> f64 {
            let rows: Vec<&str> =
                text.lines().filter(|l| l.starts_with("bosun_actor_turns_total{actor=\"pod-worker\"")).collect();
            assert_eq!(rows.len(), 1, "{rows:?}");
            rows[0].rsplit(' ').next().unwrap().parse().unwrap()
        };
        let before = text(&deps, "/metrics").await;
        assert!(!before.contains("pod-worker/"), "no row per pod");
        assert!(before.contains("state=\"running\"} 2"), "{before}");
        assert!(turns(&before) >= 2.0);
        one.stop();
        one.stopped().await;
        let after = text(&deps, "/metrics").await;
        assert!(turns(&after) >= turns(&before), "{} {}", turns(&before), turns(&after));
        assert!(after.contains("state=\"running\"} 1"), "{after}");
    });
}

#[test]
fn the_same_numbers_come_as_openmetrics() {
    actor::testing::run(1, |kernel| async move {
        let (_, kind, body) =
            ask(&node(&kernel), "GET", "/metrics", &[("accept", "application/openmetrics-text; version=1.0.0")]).await;
        assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        let text = String::from_utf8(body).unwrap();
        assert!(text.ends_with("# EOF\n"));
        for line in [
            "# TYPE kubelet_started_pods counter",
            "# TYPE kubelet_pleg_discard_events unknown",
            "kubelet_running_pods 1.0",
            "kubelet_certificate_manager_server_ttl_seconds +Inf",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\nin\n{text}");
        }
        assert!(text.lines().any(|l| l.starts_with("kubelet_started_pods_total ")), "{text}");
        assert!(text.contains("_bucket{le=\"1.0\"}"), "{text}");
    });
}

#[test]
fn the_same_numbers_come_as_protobuf() {
    actor::testing::run(1, |kernel| async move {
        let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let (_, kind, body) = ask(&node(&kernel), "GET", "/metrics", &[("accept", accept)]).await;
        assert!(kind.starts_with("application/vnd.google.protobuf"), "{kind}");
        let mut rest = body.as_slice();
        let mut all = Vec::new();
        while !rest.is_empty() {
            all.push(Family::decode_length_delimited(&mut rest).unwrap());
        }
        let family = |name: &str| all.iter().find(|f| f.name.as_deref() == Some(name)).unwrap();
        let node = &family("kubelet_node_name").metric[0];
        assert_eq!(node.label[0].value.as_deref(), Some("n1"));
        assert_eq!(node.gauge.unwrap().value, Some(1.0));
        let relist = family("kubelet_pleg_relist_duration_seconds");
        assert_eq!((relist.kind, relist.metric[0].histogram.as_ref().unwrap().bucket.len()), (Some(4), 11));
    });
}

#[test]
fn gzip_holds_the_same_text() {
    actor::testing::run(1, |kernel| async move {
        let (_, _, body) = ask(&node(&kernel), "GET", "/metrics/probes", &[("accept-encoding", "gzip")]).await;
        let mut text = String::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut text).unwrap();
        assert!(text.contains("# TYPE process_start_time_seconds gauge\n"), "{text}");
    });
}

#[test]
fn probes_are_on_their_own_page() {
    actor::testing::run(1, |kernel| async move {
        let deps = node(&kernel);
        metrics::probes::TOTAL.with_label_values(&["Liveness", "failed", "c", "p\"q\\\n", "ns", "u"]).inc();
        let line = r#"prober_probe_total{container="c",namespace="ns",pod="p\"q\\\n",pod_uid="u",probe_type="Liveness",result="failed"} 1"#;
        let text_of = text(&deps, "/metrics/probes").await;
        assert!(text_of.lines().any(|l| l == line), "{text_of}");
        assert!(!text_of.contains("kubelet_"), "{text_of}");
        assert!(!text(&deps, "/metrics").await.contains("prober_probe_total"));
    });
}

#[test]
fn slis_tell_each_check_and_can_be_forgotten() {
    actor::testing::run(1, |kernel| async move {
        let deps = node(&kernel);
        let first = text(&deps, "/metrics/slis").await;
        for line in [
            "# HELP kubernetes_healthcheck [STABLE] Last result of each health check: 1 when it was good.",
            "kubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1",
            "kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"} 0",
            "kubernetes_healthchecks_total{name=\"syncloop\",status=\"error\",type=\"healthz\"} 1",
        ] {
            assert!(first.lines().any(|l| l == line), "{line}\nin\n{first}");
        }
        let (status, _, body) = ask(&deps, "DELETE", "/metrics/slis", &[]).await;
        assert_eq!((status, body.as_slice()), (StatusCode::OK, b"metrics reset\n".as_slice()));
        let again = text(&deps, "/metrics/slis").await;
        assert!(again.contains("kubernetes_healthchecks_total{name=\"syncloop\",status=\"error\",type=\"healthz\"} 1"));
    });
}
