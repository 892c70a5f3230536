//! What is said when somebody asks for more (`verbose`): JSON for people, whose form may change.

use std::collections::BTreeMap;
use std::sync::Arc;

use pod_supervisor::{NAMESPACE_FILES, NAMESPACES};
use serde_json::{Value, json};

use crate::blocking::Class;
use crate::error::Done;
use crate::records::{ContainerRecord, SandboxRecord};
use crate::runtime::Runtime;

type Info = BTreeMap<String, String>;

fn one(key: &str, value: &Value) -> Info {
    [(key.to_owned(), value.to_string())].into()
}

/// Folders and OCI runtimes. `stateDir` is where tools look for the disk of root file systems.
pub(super) fn runtime(rt: &Runtime) -> Info {
    let handlers: BTreeMap<&str, _> = rt.handlers.all().map(|(name, h)| (name, &h.program)).collect();
    let options = &rt.options;
    let config = json!({"rootDir": options.root, "stateDir": options.run, "systemdCgroup": options.systemd_cgroup, "runtimes": handlers});
    one("config", &config)
}

/// Where the namespaces of a pod are: no process holds them.
pub(super) fn sandbox(rt: &Runtime, record: &SandboxRecord) -> Info {
    let folder = rt.options.pod_run(&record.id).join(NAMESPACES);
    let there = NAMESPACE_FILES.into_iter().map(|name| (name, folder.join(name))).filter(|(_, path)| path.exists());
    let namespaces: BTreeMap<&str, _> = there.collect();
    one("info", &json!({"namespaces": namespaces, "supervisor": rt.socket(&record.id)}))
}

/// Its first process, and what the OCI runtime was told.
pub(super) async fn container(rt: &Arc<Runtime>, record: &ContainerRecord) -> Done<Info> {
    let bundle = rt.options.bundle(&record.pod, &record.id);
    let file = bundle.join("config.json");
    // Gone after a reboot.
    let spec = rt
        .blocking
        .run(Class::State, move || Ok(std::fs::read(&file).ok().and_then(|t| serde_json::from_slice(&t).ok())));
    let spec: Option<Value> = spec.await?;
    let info = json!({"sandboxID": record.pod, "pid": record.pid, "bundle": bundle, "runtimeSpec": spec});
    Ok(one("info", &info))
}
