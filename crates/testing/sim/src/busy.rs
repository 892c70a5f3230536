//! Some busy minutes of a node of a cluster, written down to the last word.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contract::record::{Entry, Recorder};
use fakes::runtime::{ExecReply, Program, Pull};
use model::core::Secret;
use model::k8s_openapi::ByteString;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ports::api::Method;
use ports::host::{FileKind, HostFs};
use ports::journal::Journal;
use serde_json::json;
use tokio::time::sleep;

use crate::node::{LIMIT, SimNode};
use crate::world::{DISK, POD_URL};

const RICH: &str = "
  initContainers:
  - {name: proxy, image: 'tool:1', restartPolicy: Always}
  - {name: quick, image: 'tool:1'}
  containers:
  - name: app
    image: app:1
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 3}
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}";

/// Pods from all three sources come and go, the API server is away for a while, actors crash now and then, the daemon is
/// killed once. The answer tells all that the node did: what its managers said to each other, calls, requests, events, journal,
/// disk, actors.
#[must_use]
pub fn busy_minutes(seed: u64) -> String {
    actor::testing::run(seed, |kernel| async move {
        let said = Said::default();
        let mut node = SimNode::start_in_cluster(&kernel);
        node.wiring().record(said.clone());
        program(&node);
        kernel.faults().enable();
        node.fault("*: panic#p0.002; *: delay(3ms)#p0.01");
        come(&node).await;
        node.api().unplug();
        node.remove("plain3.yaml");
        if let Some(id) = node.running_id("plain1", "app") {
            node.world.runtime.exit(&id, 3);
        }
        sleep(Duration::from_secs(20)).await;
        node.api().calm();
        sleep(Duration::from_secs(20)).await;
        node.restart().await;
        node.wiring().record(said.clone());
        node.world.web.put(POD_URL, "");
        node.delete("bound0");
        node.remove("rich.yaml");
        sleep(Duration::from_secs(90)).await;
        let said = std::mem::take(&mut *said.0.lock().unwrap_or_else(PoisonError::into_inner));
        said + &written_down(&node)
    })
}

/// What managers said to each other, one line each: the begin of it, and of all that it was a number.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<String>>);

/// Characters of an entry that are written out.
const SHOWN: usize = 200;

impl Recorder for Said {
    fn entry(&self, entry: &Entry) {
        let Entry { from, to, what, body } = entry;
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let shown: String = body.chars().take(SHOWN).collect();
        let line = format!("said {from} -> {to}: {what} {shown} ({:016x})", hasher.finish());
        let _ = writeln!(self.0.lock().unwrap_or_else(PoisonError::into_inner), "{}", line.escape_debug());
    }
}

fn program(node: &SimNode) {
    let runtime = &node.world.runtime;
    runtime.add_images(&["app:1", "tool:1"]);
    runtime.program("quick", &[Program::exits(Duration::from_secs(1), 0)]);
    runtime.program("crash", &[Program::exits(Duration::from_secs(1), 1).output(&["about to crash"])]);
    runtime.registry("pulled:1", Pull::Succeeds(Duration::from_secs(2)));
    runtime.on_exec(|_| ExecReply { takes: Duration::from_millis(50), ..ExecReply::default() });
}

fn manifest(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:{spec}\n")
}

async fn come(node: &SimNode) {
    for i in 0..5 {
        let spec = "\n  containers:\n  - {name: app, image: 'app:1'}";
        node.put(&format!("plain{i}.yaml"), &manifest(&format!("plain{i}"), spec));
    }
    for (name, spec) in [
        (
            "looping",
            "\n  containers:\n  - {name: crash, image: 'app:1', terminationMessagePolicy: FallbackToLogsOnError}",
        ),
        ("job", "\n  restartPolicy: Never\n  containers:\n  - {name: quick, image: 'app:1'}"),
        ("pulls", "\n  containers:\n  - {name: app, image: 'pulled:1'}"),
        ("noimage", "\n  containers:\n  - {name: app, image: 'missing:1'}"),
        ("rich", RICH),
    ] {
        node.put(&format!("{name}.yaml"), &manifest(name, spec));
    }
    let of_url = manifest("web", "\n  containers:\n  - {name: app, image: 'app:1'}");
    node.world.web.put(POD_URL, &of_url);
    let (name, namespace) = (Some("keys".to_owned()), Some("default".to_owned()));
    let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
    let data = Some([("pass".to_owned(), ByteString(b"hush".to_vec()))].into());
    node.api().put(&Secret { metadata, data, ..Secret::default() });
    for i in 0..3 {
        let pass = json!({ "name": "PASS", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "pass" } } });
        node.bind(&format!("bound{i}"), json!({ "containers": [{ "name": "app", "image": "app:1", "env": [pass] }] }));
    }
    let bound = |n: &SimNode| (0..3).all(|i| n.is_ready(&format!("bound{i}")));
    node.until("all are there", LIMIT, |n| n.is_ready("rich") && n.is_ready("web") && bound(n)).await;
    sleep(Duration::from_secs(10)).await;
}

/// All that a run leaves behind.
fn written_down(node: &SimNode) -> String {
    let mut out = String::new();
    for call in node.world.runtime.calls() {
        let _ = writeln!(out, "call {call:?}");
    }
    for request in node.world.api.iter().flat_map(fakes::FakeApi::requests) {
        let body = if request.method == Method::Get { String::new() } else { request.body.to_string() };
        let answer = request.failure.map_or_else(String::new, |e| format!("{e:?}"));
        let (at, path) = (request.at, &request.path);
        let _ = writeln!(out, "request {at:?} {:?} {path} {:?} {body} {answer}", request.method, request.query);
    }
    for entry in &node.wiring().value::<contract::event::EventView>().get().entries {
        let _ = writeln!(out, "event {entry:?}");
    }
    for key in node.world.journal.keys("").unwrap_or_default() {
        let line = node.world.journal.load(&key).ok().flatten().unwrap_or_default();
        let _ = writeln!(out, "journal {key} {}", content(&key, &line));
    }
    disk(node, DISK, &mut out);
    for a in node.kernel.directory().actors() {
        let _ = writeln!(out, "actor {} {:?} of generation {}, {} turns", a.name, a.state, a.generation, a.turns);
    }
    for struck in node.kernel.faults().log() {
        let _ = writeln!(out, "struck {struck}");
    }
    out
}

/// As text. The sealed cache has its key and nonces from the machine's own random source, as it must: of it the length.
fn content(name: &str, bytes: &[u8]) -> String {
    if name.starts_with("object/") || name.ends_with("objects.key") {
        return format!("{} bytes, sealed", bytes.len());
    }
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

fn disk(node: &SimNode, folder: &str, out: &mut String) {
    for entry in node.world.files.list_dir(folder.as_ref()).unwrap_or_default() {
        let path = format!("{folder}/{}", entry.name);
        let Ok(Some(stat)) = node.world.files.stat_link(path.as_ref()) else { continue };
        let content = match stat.kind {
            FileKind::File => node.world.files.read_file(path.as_ref(), u64::MAX).unwrap_or_default(),
            _ => Vec::new(),
        };
        let _ = writeln!(out, "disk {path} {stat:?} {}", self::content(&path, &content));
        if entry.is_dir {
            disk(node, &path, out);
        }
    }
}
