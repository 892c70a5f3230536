mod accepted;
mod decoding;
mod defaulting;
mod golden;
mod mutations;
mod random;
mod refused;

use serde_json::{Value, json};

use crate::{Fault, Manifest, ManifestError, Origin, Source, read_manifest};

const ORIGIN: Origin<'static> =
    Origin { node_name: "node-a", source: Source::File("/etc/kubernetes/manifests/web.yaml") };

/// Dotted paths and the values to put there.
type Changes<'a> = &'a [(&'a str, Value)];

fn read(text: &str) -> Result<Manifest, ManifestError> {
    read_manifest(text.as_bytes(), &ORIGIN)
}

fn read_json(value: &Value) -> Result<Manifest, ManifestError> {
    read(&value.to_string())
}

/// A pod that uses most of what a static pod may use.
fn rich() -> Value {
    serde_json::from_str(include_str!("tests/rich.json")).unwrap()
}

/// Sets the value at a dotted path such as `spec.containers.0.name`, making parents on the way.
fn put(root: &mut Value, path: &str, value: Value) {
    let mut node = root;
    for part in path.split('.') {
        node = match part.parse::<usize>() {
            Ok(i) => {
                if node.is_null() {
                    *node = json!([]);
                }
                let list = node.as_array_mut().unwrap();
                while list.len() <= i {
                    list.push(Value::Null);
                }
                &mut list[i]
            }
            Err(_) => {
                if node.is_null() {
                    *node = json!({});
                }
                // Keys with dots are written with '~'.
                node.as_object_mut().unwrap().entry(part.replace('~', ".")).or_insert(Value::Null)
            }
        };
    }
    *node = value;
}

/// Paths and kinds of all faults.
fn faults(error: &ManifestError) -> Vec<(String, Fault)> {
    error.fields().iter().map(|f| (f.path.clone(), f.fault)).collect()
}
