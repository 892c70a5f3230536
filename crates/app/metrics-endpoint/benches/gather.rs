//! What a scrape of a full node costs: 110 pods with two containers each, their workers, series as after a day's work.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use contract::Wiring;
use contract::lookup::PodLookup;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::volume::{VolumeRow, VolumeStage};
use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::BodyExt;
use metrics_endpoint::{BuildInfo, Deps, FeatureGate, router};
use model::core::{Container, Pod, PodSpec, Volume};
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use tower::ServiceExt;

struct Idle;
impl actor::Actor for Idle {
    type Context = actor::Ctx<Self>;
}
actor::supervised!(Idle);

fn observed(uid: &PodUid) -> PodObservation {
    let mut pod = PodObservation::empty(uid.clone(), "shop", uid.as_str());
    pod.sandboxes.push(SandboxObservation::new("s", 0, true));
    for name in ["app", "side"] {
        pod.containers.push(ContainerObservation::new(format!("{uid}-{name}"), name, "s", ContainerState::Running));
    }
    pod
}

fn count_a_day() {
    for op in [
        "run_podsandbox",
        "create_container",
        "start_container",
        "stop_container",
        "remove_container",
        "list_containers",
        "list_podsandbox",
        "container_status",
        "podsandbox_status",
        "status",
        "version",
        "image_status",
        "pull_image",
        "list_images",
        "image_fs_info",
        "exec_sync",
    ] {
        metrics::runtime::OPERATIONS.with_label_values(&[op]).inc();
        metrics::runtime::DURATION.with_label_values(&[op]).observe(0.1);
    }
    for op in ["create", "update", "sync"] {
        metrics::pods::WORKER_DURATION.with_label_values(&[op]).observe(0.1);
    }
    for phase in metrics::actors::Phase::ALL {
        phase.took(std::time::Duration::from_millis(5));
    }
    for path in ["metrics", "pods", "exec", "containerLogs", "stats", "healthz", "metrics/cadvisor", "metrics/resource"]
    {
        metrics::http::REQUESTS.with_label_values(&["GET", path, "readwrite", "false"]).inc();
        metrics::http::DURATION.with_label_values(&["GET", path, "readwrite", "false"]).observe(0.01);
        metrics::http::INFLIGHT.with_label_values(&["GET", path, "readwrite", "false"]).set(0);
    }
    for verb in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        for code in ["200", "201", "404", "409"] {
            metrics::rest_client::REQUESTS.with_label_values(&[code, "10.0.0.1:6443", verb]).inc();
        }
        metrics::rest_client::DURATION.with_label_values(&["10.0.0.1:6443", verb]).observe(0.01);
        metrics::rest_client::REQUEST_SIZE.with_label_values(&["10.0.0.1:6443", verb]).observe(100.0);
        metrics::rest_client::RESPONSE_SIZE.with_label_values(&["10.0.0.1:6443", verb]).observe(100.0);
        metrics::rest_client::RATE_LIMITER_DURATION.with_label_values(&["10.0.0.1:6443", verb]).observe(0.0);
    }
    for plugin in ["empty-dir", "configmap", "secret", "projected", "downward-api", "host-path"] {
        for op in ["volume_mount", "volume_unmount"] {
            let plugin = format!("kubernetes.io/{plugin}");
            metrics::volumes::STORAGE_OPERATION.with_label_values(&["false", op, "success", &plugin]).observe(0.1);
            metrics::volumes::VOLUME_OPERATION.with_label_values(&[op, &plugin]).observe(0.1);
        }
    }
    for n in 0..110 {
        for kind in ["Liveness", "Readiness"] {
            let pod = format!("pod-{n}");
            metrics::probes::TOTAL.with_label_values(&[kind, "successful", "app", &pod, "shop", &pod]).inc();
            metrics::probes::DURATION.with_label_values(&[kind, "app", &pod, "shop"]).observe(0.01);
        }
    }
}

fn node(kernel: &actor::Kernel) -> Deps {
    let wiring = Wiring::default();
    let group = kernel.group("workers", actor::Policy::default());
    for n in 0..110 {
        let uid = PodUid::from(format!("pod-{n}"));
        let volume =
            |name: &str| Volume { name: name.into(), empty_dir: Some(Default::default()), ..Volume::default() };
        let spec = PodSpec {
            containers: vec![Container::default(), Container::default()],
            volumes: Some(["a", "b", "c"].map(volume).to_vec()),
            ..PodSpec::default()
        };
        let pod = Arc::new(Pod { spec: Some(spec), ..Pod::default() });
        let source = contract::config_sources::Source::Api;
        let row = contract::pod_manager::DesiredPod::admitted(pod.clone(), source);
        wiring.put(uid.clone(), row);
        let row = contract::runtime::Observed { pod: Arc::new(observed(&uid)), observed_at: Timestamp::ZERO };
        wiring.put(uid.clone(), row);
        let worker = WorkerState { pod: Some(pod), ..WorkerState::new(WorkerPhase::Syncing) };
        wiring.put(uid.clone(), worker);
        kernel.spawn(actor::Spec::new(format!("pod-worker/{uid}")).group(&group), |_| Idle);
    }
    let (kind, stage) = ("emptyDir".to_owned(), VolumeStage::Mounted);
    let row = |n: usize| VolumeRow {
        pod: Some(PodUid::from(format!("pod-{}", n / 3))),
        kind: kind.clone(),
        stage,
        ..VolumeRow::default()
    };
    let rows: Arc<Vec<VolumeRow>> = Arc::new((0..330).map(row).collect());
    let gate = |n: usize| FeatureGate { name: format!("Gate{n}"), stage: "BETA".into(), enabled: true };
    Deps {
        kernel: kernel.clone(),
        lookup: PodLookup::of(&wiring),
        workers: wiring.board(),
        volumes: Arc::new(move || {
            let rows = rows.clone();
            Box::pin(async move { Some(rows) })
        }),
        plugins: wiring.board(),
        certificates: wiring.value(),
        client_certificate_managed: true,
        serving_certificate_managed: true,
        node_name: "n1".into(),
        feature_gates: (0..120).map(gate).collect(),
        build: BuildInfo::default(),
        health_checks: Arc::new(Vec::new),
        elsewhere: None,
        usage: None,
    }
}

async fn scrape(app: axum::Router, path: &str, accept: [&'static str; 2]) -> usize {
    let request = Request::get(path).header("accept", accept[0]).header("accept-encoding", accept[1]);
    let answer = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    answer.into_body().collect().await.unwrap().to_bytes().len()
}

fn gather(c: &mut Criterion) {
    count_a_day();
    actor::testing::run(1, |kernel| async move {
        let app = router(node(&kernel));
        actor::testing::settle().await;
        for (name, path, accept) in [
            ("text", "/metrics", ["text/plain", "identity"]),
            ("text, gzip", "/metrics", ["text/plain", "gzip"]),
            ("openmetrics", "/metrics", ["application/openmetrics-text", "identity"]),
            (
                "protobuf",
                "/metrics",
                [
                    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
                    "identity",
                ],
            ),
            ("probes", "/metrics/probes", ["text/plain", "identity"]),
        ] {
            let bytes = scrape(app.clone(), path, accept).await;
            println!("{name}: {bytes} bytes");
            // Nothing in a scrape waits here, so that one poll is the whole of it.
            c.bench_function(name, |b| {
                b.iter(|| {
                    let mut work = Box::pin(scrape(app.clone(), path, accept));
                    let waker = std::task::Waker::noop();
                    let polled = work.as_mut().poll(&mut std::task::Context::from_waker(waker));
                    assert!(polled.is_ready());
                });
            });
        }
    });
}

criterion_group!(benches, gather);
criterion_main!(benches);
