//! An API server in memory for a daemon in a guest: `fake-api FOLDER` serves the pods of the JSON files in the folder, those that come
//! later as well, and writes the address into its file `url`. A file `*.object` has any object and its path.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fake_api::FakeApiServer;
use fakes::FakeApi;
use model::core::{ConfigMap, Pod, ServiceAccount};
use serde_json::{Value, json};

/// Between two looks at the folder.
const LOOKS: Duration = Duration::from_millis(300);

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(Path::new(&folder)));
}

async fn serve(folder: &Path) {
    let api = FakeApi::new();
    let root = json!({ "metadata": { "name": "kube-root-ca.crt", "namespace": "default" }, "data": { "ca.crt": "a certificate" } });
    api.put(&serde_json::from_value::<ConfigMap>(root).expect("a configMap"));
    let account = json!({ "metadata": { "name": "default", "namespace": "default" } });
    api.put(&serde_json::from_value::<ServiceAccount>(account).expect("a service account"));
    let server = FakeApiServer::plain(api.clone()).await;
    std::fs::write(folder.join("url"), server.url()).expect("written");
    let mut known = BTreeSet::new();
    loop {
        for entry in std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "json") && known.insert(path.clone()) {
                let text = std::fs::read_to_string(&path).expect("read");
                api.put(&serde_json::from_str::<Pod>(&text).expect("a pod"));
            }
            if path.extension().is_some_and(|e| e == "object") && known.insert(path.clone()) {
                let text = std::fs::read_to_string(&path).expect("read");
                let mut entry: Value = serde_json::from_str(&text).expect("JSON");
                let object = entry["object"].take();
                api.put_json(entry["path"].as_str().expect("a path"), object);
            }
        }
        tokio::time::sleep(LOOKS).await;
    }
}
