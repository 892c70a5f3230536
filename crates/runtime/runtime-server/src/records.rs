//! What is kept on the disk of each pod and container, in files that a person can read.
//!
//! `ROOT/pods/<pod>/sandbox.json` is written before the pod's network is made, `containers/<container>/container.json` before its
//! root file system; both are replaced atomically. `exit.json` beside the latter is the supervisor's. A folder without a record
//! is what a crash left of a beginning, and goes; so does one whose record cannot be understood, as nobody can serve it.

use std::fs;
use std::io;
use std::path::Path;

use container_spec::pod_namespace_options;
use cri_api::v1;
use pod_supervisor::ExitRecord;
use pod_supervisor::record::{read_record, write_passing_record, write_record};
use serde::{Deserialize, Serialize};

use crate::error::{At, Done};
use crate::network::PodNetwork;
use crate::options::Options;

mod config;
#[cfg(test)]
mod tests;

/// Where a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PodStage {
    /// Being made; after a restart it is not ready, and taken down.
    Starting,
    /// Its supervisor runs.
    Ready,
    /// It has been stopped, or its supervisor is gone.
    NotReady,
}

/// A pod sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SandboxRecord {
    pub(crate) id: String,
    pub(crate) stage: PodStage,
    /// Nanoseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) runtime_handler: String,
    pub(crate) network: PodNetwork,
    /// Its network has been taken back.
    pub(crate) network_removed: bool,
    pub(crate) config: v1::PodSandboxConfig,
}

/// Who a container's first process is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContainerRecord {
    pub(crate) id: String,
    pub(crate) pod: String,
    /// Nanoseconds since 1970; 0: not yet.
    pub(crate) created_at: i64,
    pub(crate) started_at: i64,
    /// First process; 0: none that is known.
    #[serde(skip)]
    pub(crate) pid: i32,
    pub(crate) exit: Option<ExitRecord>,
    /// Why it ended, where code and `oom` do not say it.
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) image_id: String,
    pub(crate) image_ref: String,
    pub(crate) stop_signal: i32,
    pub(crate) user: User,
    pub(crate) log_path: String,
    #[serde(with = "config")]
    pub(crate) config: v1::ContainerConfig,
}

const SANDBOX: &str = "sandbox.json";
/// In the folder that does not outlive a reboot: the pod's network, once the pod is ready.
const READY: &str = "ready.json";
const CONTAINER: &str = "container.json";
const EXIT: &str = "exit.json";

impl SandboxRecord {
    /// Writes the record.
    pub(crate) fn write(&self, options: &Options) -> Done<()> {
        let path = options.pod_root(&self.id).join(SANDBOX);
        write_record(&path, self).at("write", &path)
    }

    /// Notes that the pod is ready.
    pub(crate) fn write_ready(&self, options: &Options) -> Done<()> {
        let path = options.pod_run(&self.id).join(READY);
        write_passing_record(&path, &self.network).at("write", &path)
    }

    /// Options of its namespaces.
    pub(crate) fn namespaces(&self) -> v1::NamespaceOption {
        pod_namespace_options(&self.config).cloned().unwrap_or_default()
    }

    /// Whether it is on the node's network.
    pub(crate) fn host_network(&self) -> bool {
        self.namespaces().network() == v1::NamespaceMode::Node
    }

    /// The cgroup that its containers' are in.
    pub(crate) fn cgroup_parent(&self) -> &str {
        self.config.linux.as_ref().map_or("", |l| &l.cgroup_parent)
    }
}

impl ContainerRecord {
    /// Writes the record.
    pub(crate) fn write(&self, options: &Options) -> Done<()> {
        let path = options.containers_root(&self.pod).join(&self.id).join(CONTAINER);
        write_record(&path, self).at("write", &path)
    }

    /// Where it stands.
    pub(crate) fn state(&self) -> v1::ContainerState {
        match (&self.exit, self.started_at) {
            (Some(_), _) => v1::ContainerState::ContainerExited,
            (None, 0) => v1::ContainerState::ContainerCreated,
            (None, _) => v1::ContainerState::ContainerRunning,
        }
    }
}

/// The network of a pod that was ready since the machine was started.
pub(crate) fn read_ready(options: &Options, pod: &str) -> Done<Option<PodNetwork>> {
    read(&options.pod_run(pod).join(READY))
}

/// Undoes [`SandboxRecord::write_ready`].
pub(crate) fn remove_ready(options: &Options, pod: &str) -> Done<()> {
    let path = options.pod_run(pod).join(READY);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e).at("remove", &path),
        _ => Ok(()),
    }
}

/// How a container ended, if its supervisor wrote it.
pub(crate) fn read_exit(options: &Options, pod: &str, container: &str) -> Done<Option<ExitRecord>> {
    let path = options.containers_root(pod).join(container).join(EXIT);
    match read_record(&path) {
        Ok(exit) => Ok(Some(exit)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).at("read", &path),
    }
}

/// A pod, or a container of a pod, that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) pod: String,
    pub(crate) container: Option<String>,
    /// Why.
    pub(crate) why: String,
}

/// All that is on the disk, and folders that hold no record.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) sandboxes: Vec<SandboxRecord>,
    pub(crate) containers: Vec<ContainerRecord>,
    /// What a crash left before its record was there, and what has a record that cannot be read.
    pub(crate) broken: Vec<Broken>,
}

/// Reads all records. One that cannot be read concerns nobody but its own pod or container.
///
/// # Errors
/// The folder of pods cannot be read.
pub(crate) fn read_all(options: &Options) -> Done<Found> {
    let mut found = Found::default();
    for pod in names(&options.root.join("pods"))? {
        let read = record(&options.pod_root(&pod).join(SANDBOX), |s: &SandboxRecord| s.id == pod)
            .and_then(|sandbox| Ok((sandbox, names(&options.containers_root(&pod)).map_err(|e| e.to_string())?)));
        let containers = match read {
            Ok((sandbox, containers)) => {
                found.sandboxes.push(sandbox);
                containers
            }
            Err(why) => {
                found.broken.push(Broken { pod, container: None, why });
                continue;
            }
        };
        for id in containers {
            let path = options.containers_root(&pod).join(&id).join(CONTAINER);
            match record(&path, |c: &ContainerRecord| c.id == id && c.pod == pod) {
                Ok(record) => found.containers.push(record),
                Err(why) => found.broken.push(Broken { pod: pod.clone(), container: Some(id), why }),
            }
        }
    }
    Ok(found)
}

/// The record of a folder, which has to be about that folder.
fn record<T: serde::de::DeserializeOwned>(path: &Path, own: impl FnOnce(&T) -> bool) -> Result<T, String> {
    match read(path) {
        Ok(Some(record)) if own(&record) => Ok(record),
        Ok(Some(_)) => Err(format!("{}: another one's record", path.display())),
        Ok(None) => Err("a beginning without a record".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// `None`: there is none.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Done<Option<T>> {
    match read_record(path) {
        Ok(record) => Ok(Some(record)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).at("read", path),
    }
}

/// Containers of a pod whose record cannot be read, by their folders.
pub(crate) fn containers_of(options: &Options, pod: &str) -> Done<Vec<String>> {
    names(&options.containers_root(pod))
}

fn names(dir: &Path) -> Done<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).at("readdir", dir),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.at("readdir", dir)?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
