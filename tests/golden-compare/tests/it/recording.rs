//! Reads `tests/golden`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One mutating call, from whichever side.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) rpc: String,
    /// Protobuf JSON with the field names of the proto file.
    pub(crate) request: Value,
    /// Seconds.
    pub(crate) start: f64,
    /// Seconds; infinite while unanswered.
    pub(crate) end: f64,
}

/// One recorded pod.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) calls: Vec<Call>,
}

impl Case {
    /// Whether the pod came from the static pod folder.
    pub(crate) fn is_static(&self) -> bool {
        self.name.starts_with("static-")
    }

    /// Id of an image as the recorded runtime had it.
    pub(crate) fn image_id(&self, image: &str) -> Option<String> {
        let of = |c: &Call| {
            let spec = &c.request["config"]["image"];
            (spec["user_specified_image"] == image).then(|| spec["image"].as_str().unwrap_or_default().to_owned())
        };
        self.calls.iter().find_map(of)
    }
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/kubelet-1.36.2")
}

fn call(line: &str) -> Call {
    let v: Value = serde_json::from_str(line).expect("a recorded call");
    let start = v["t"].as_f64().expect("a start time");
    Call {
        rpc: v["rpc"].as_str().expect("a method").to_owned(),
        request: v["request"].clone(),
        start,
        end: start + v["ms"].as_f64().expect("a duration") / 1000.0,
    }
}

/// The case of this name, calls in the order of their start.
pub(crate) fn case(name: &str) -> Case {
    let read = |file: &str| {
        let path = dir().join(name).join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let mut calls: Vec<_> = read("cri.jsonl").lines().map(call).collect();
    calls.sort_by(|a, b| a.start.total_cmp(&b.start));
    Case { name: name.to_owned(), manifest: read("manifest.yaml"), calls }
}

/// Names of all cases with recorded calls.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(dir()).expect("golden data").map(|e| e.expect("an entry").path());
    let with_calls = entries.filter(|p| p.join("cri.jsonl").exists());
    let mut names: Vec<_> = with_calls.map(|p| p.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
