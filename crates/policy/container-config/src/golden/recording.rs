//! Reads `tests/golden` and compares messages.

use std::path::Path;

use model::core::{Pod, Service};
use model::pod::{CONFIG_SEEN, CONFIG_SOURCE};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use crate::ObjectMap;

fn pool() -> DescriptorPool {
    DescriptorPool::decode(cri_api::FILE_DESCRIPTOR_SET).expect("descriptors of the CRI")
}

/// One recorded pod.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) pod: Pod,
    pub(super) services: Vec<Service>,
    pub(super) objects: ObjectMap,
    calls: Vec<Value>,
}

impl Case {
    /// Recorded requests of one method, as messages.
    pub(super) fn requests<M: Message + Default>(&self, rpc: &str, message: &str) -> Vec<M> {
        let descriptor = pool().get_message_by_name(message).expect("a message of the CRI");
        let of_rpc = self.calls.iter().filter(|c| c["rpc"] == rpc);
        of_rpc
            .map(|c| {
                let dynamic = DynamicMessage::deserialize(descriptor.clone(), c["request"].clone());
                dynamic.expect("a recorded request").transcode_to().expect("the same message")
            })
            .collect()
    }
}

fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap_or_else(|e| panic!("{}/{file}: {e}", dir.display()))
}

/// All cases. Annotations that live on the node only are added to pods that came from the API.
pub(super) fn cases((services, objects): &(Vec<Service>, ObjectMap)) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/kubelet-1.36.2");
    let mut dirs: Vec<_> = std::fs::read_dir(root).expect("golden data").map(|e| e.expect("entry").path()).collect();
    dirs.retain(|d| d.join("cri.jsonl").exists() && d.join("pod.json").exists());
    dirs.sort();
    let case = |dir: &std::path::PathBuf| {
        let calls: Vec<Value> =
            read(dir, "cri.jsonl").lines().map(|l| serde_json::from_str(l).expect("a recorded call")).collect();
        let mut pod: Pod = serde_json::from_str(&read(dir, "pod.json")).expect("a pod");
        let recorded = &calls[0]["request"]["config"]["annotations"];
        for key in [CONFIG_SEEN, CONFIG_SOURCE] {
            let value = recorded[key].as_str().expect("an annotation of the node").to_owned();
            pod.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
        }
        Case {
            name: dir.file_name().expect("a name").to_string_lossy().into_owned(),
            pod,
            services: services.clone(),
            objects: objects.clone(),
            calls,
        }
    };
    dirs.iter().map(case).collect()
}

fn json(message: &impl Message, name: &str) -> Value {
    let descriptor = pool().get_message_by_name(name).expect("a message of the CRI");
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).expect("the same message");
    let options = SerializeOptions::new().use_proto_field_name(true);
    dynamic.serialize_with_options(serde_json::value::Serializer, &options).expect("json")
}

fn compare(path: &str, want: &Value, got: &Value, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            let keys: std::collections::BTreeSet<_> = w.keys().chain(g.keys()).collect();
            for key in keys {
                let side = |m: &serde_json::Map<String, Value>| m.get(key).cloned().unwrap_or(Value::Null);
                compare(&format!("{path}.{key}"), &side(w), &side(g), out);
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (i, (w, g)) in w.iter().zip(g).enumerate() {
                compare(&format!("{path}[{i}]"), w, g, out);
            }
        }
        (w, g) if w == g => {}
        (w, g) => out.push(format!("{path}: recorded {w}, ours {g}")),
    }
}

/// Every field in which two messages differ.
pub(super) fn differences<M: Message>(case: &str, name: &str, want: &M, got: &M) -> Vec<String> {
    let mut out = Vec::new();
    compare(case, &json(want, name), &json(got, name), &mut out);
    out
}
