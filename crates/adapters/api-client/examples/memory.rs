//! What a client that follows 110 pods costs in memory: `cargo run --release -p api-client --example memory`.
//!
//! The server is another process, so that only the client is measured. Its pods are as kubectl and controllers make them:
//! three containers, thirty variables, and who wrote which field.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use api_client::{ApiClient, Settings, kubeconfig};
use fake_api::{Authority, FakeApiServer, ServerTls};
use fakes::FakeApi;
use futures::StreamExt;
use ports::api::{ApiServer, Followed, Kind, Selection};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match std::env::args().nth(1) {
        Some(folder) => runtime.block_on(serve(&folder)),
        None => runtime.block_on(measure()),
    }
}

async fn serve(folder: &str) -> Result<(), Failure> {
    let authority = Authority::new();
    let api = FakeApi::new();
    for n in 0..110 {
        api.put_json(&format!("/api/v1/namespaces/default/pods/pod-{n}"), pod(n));
    }
    let tls = ServerTls { shown: authority.server("kubernetes"), clients: Some(authority.pem.clone()) };
    let server = FakeApiServer::tls(api.clone(), &tls).await;
    let node = authority.node("n1");
    std::fs::write(format!("{folder}/ca.crt"), &authority.pem)?;
    std::fs::write(format!("{folder}/node.pem"), format!("{}{}", node.certificate, node.key))?;
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "k", "cluster": { "server": server.url(), "certificate-authority": "ca.crt" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "users": [{ "name": "u", "user": { "client-certificate": "node.pem", "client-key": "node.pem" } }],
    });
    std::fs::write(format!("{folder}/kubeconfig"), document.to_string())?;
    println!("ready");
    // Each pod changes ten times.
    for turn in 0..1100 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let path = format!("/api/v1/namespaces/default/pods/pod-{}", turn % 110);
        let mut changed = pod(turn % 110);
        changed["status"]["message"] = turn.to_string().into();
        api.put_json(&path, changed);
    }
    std::future::pending().await
}

async fn measure() -> Result<(), Failure> {
    let folder = tempfile::TempDir::new()?;
    print("start");
    let mut server = Command::new(std::env::current_exe()?).arg(folder.path()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let kubeconfig = kubeconfig::read(&folder.path().join("kubeconfig")).map_err(|p| format!("{p:?}"))?;
    print("kubeconfig read");
    let client = ApiClient::new(&kubeconfig, Settings::default())?;
    let field_selector = "spec.nodeName=n1".to_owned();
    let mut follow = client.follow(Selection { kind: Kind::Pod, namespace: None, field_selector });
    let Some(Followed::All(all)) = follow.next().await else { return Err("no list".into()) };
    let mut pods: std::collections::BTreeMap<String, ports::api::Object> = std::collections::BTreeMap::new();
    for (n, object) in all.into_iter().enumerate() {
        pods.insert(n.to_string(), object);
    }
    print(&format!("{} pods held", pods.len()));
    for n in 0..1090_usize {
        if let Some(Followed::Applied(object)) = follow.next().await {
            pods.insert((n % 110).to_string(), object);
        }
    }
    print("after 1090 changes");
    server.kill()?;
    server.wait()?;
    Ok(())
}

fn print(stage: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0)
    };
    println!("{stage:<24} RSS {:>6} KiB, of that anonymous {:>6} KiB", field("VmRSS:"), field("RssAnon:"));
}

fn pod(n: u32) -> Value {
    let env: Vec<Value> =
        (0..10).map(|i| json!({ "name": format!("NAME_{i}"), "value": format!("value number {i}") })).collect();
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example/{name}:1.2.3"), "env": env,
            "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" }, "limits": { "memory": "64Mi" } },
            "ports": [{ "containerPort": 8080, "protocol": "TCP" }],
            "volumeMounts": [{ "name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true }],
            "livenessProbe": { "httpGet": { "path": "/healthz", "port": 8080 }, "periodSeconds": 10 },
        })
    };
    let containers: Vec<Value> = ["web", "sidecar", "logger"].map(container).to_vec();
    let conditions: Vec<Value> =
        ["Ready", "Initialized", "PodScheduled"].map(|t| json!({ "type": t, "status": "True" })).to_vec();
    let fields: Value = (0..60).map(|i| (format!("f:field{i}"), json!({ ".": {}, "f:inner": {} }))).collect();
    json!({
        "metadata": {
            "name": format!("pod-{n}"), "namespace": "default", "labels": { "app": "web", "pod-template-hash": "5d59d67564" },
            "annotations": { "kubernetes.io/config.seen": "2026-01-01T00:00:00Z" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "x", "controller": true }],
            "managedFields": [{ "manager": "kubectl", "operation": "Update", "fieldsV1": fields }],
        },
        "spec": {
            "nodeName": "n1", "containers": containers, "serviceAccountName": "default",
            "volumes": [{ "name": "kube-api-access", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } }] } }],
            "tolerations": [{ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute" }],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1",
            "conditions": conditions,
        },
    })
}
