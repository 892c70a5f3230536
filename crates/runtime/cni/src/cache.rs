//! What plugins have answered, kept where libcni keeps it and in its form: `<cache>/results/<network>-<container>-<interface>`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attachment::Attachment;
use crate::conf::NetworkList;
use crate::error::{CniError, failed};
use crate::result::NetworkResult;

const KIND: &str = "cniCacheV1";
/// Bytes of an entry.
const MAX_ENTRY: u64 = 4 << 20;

/// An entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    kind: String,
    container_id: String,
    /// The configuration's bytes in base64.
    config: String,
    if_name: String,
    network_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    netns: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cni_args: Vec<(String, String)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    capability_args: BTreeMap<String, Value>,
    pub(crate) result: Value,
}

fn path(cache: &Path, network: &str, container: &str, interface: &str) -> PathBuf {
    cache.join("results").join(format!("{network}-{container}-{interface}"))
}

impl Entry {
    /// The configuration that the network was added by.
    pub(crate) fn list(&self) -> Option<NetworkList> {
        NetworkList::parse(&STANDARD.decode(&self.config).ok()?).ok()
    }

    /// Whom the network was given to.
    pub(crate) fn attachment(&self) -> Attachment {
        Attachment {
            container: self.container_id.clone(),
            namespace: Some(PathBuf::from(&self.netns)).filter(|p| !p.as_os_str().is_empty()),
            interface: self.if_name.clone(),
            args: self.cni_args.clone(),
            capabilities: self.capability_args.clone(),
        }
    }
}

/// Keeps the result of an ADD. It must outlive a power cut: without it, what was added cannot be taken back whole.
pub(crate) fn write(cache: &Path, list: &NetworkList, to: &Attachment, result: &NetworkResult) -> Result<(), CniError> {
    let entry = Entry {
        kind: KIND.into(),
        container_id: to.container.clone(),
        config: STANDARD.encode(&list.bytes),
        if_name: to.interface.clone(),
        network_name: list.name.clone(),
        netns: to.namespace.as_ref().map(|p| p.display().to_string()).unwrap_or_default(),
        cni_args: to.args.clone(),
        capability_args: to.capabilities.clone(),
        result: result.raw.clone(),
    };
    let path = path(cache, &list.name, &to.container, &to.interface);
    let named = format!("write {}", path.display());
    let folder = cache.join("results");
    fs::create_dir_all(&folder).map_err(failed(&named))?;
    let bytes = serde_json::to_vec(&entry).map_err(io::Error::from).map_err(failed(&named))?;
    pod_supervisor::record::write_atomically(&path, &bytes).map_err(failed(named))
}

/// The entry of an ADD. One that cannot be read (a power cut left it empty, as libcni does not bring it to the disk) is none.
pub(crate) fn read(cache: &Path, network: &str, container: &str, interface: &str) -> Option<Entry> {
    entry(&path(cache, network, container, interface))
}

fn entry(path: &Path) -> Option<Entry> {
    if fs::metadata(path).ok()?.len() > MAX_ENTRY {
        return None;
    }
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (entry.kind == KIND).then_some(entry)
}

/// All entries of one container.
pub(crate) fn of_container(cache: &Path, container: &str) -> Vec<Entry> {
    all(cache).into_iter().filter(|e| e.container_id == container).collect()
}

/// All entries of a network.
pub(crate) fn of_network(cache: &Path, network: &str) -> Vec<Entry> {
    all(cache).into_iter().filter(|e| e.network_name == network).collect()
}

fn all(cache: &Path) -> Vec<Entry> {
    let entries = fs::read_dir(cache.join("results")).into_iter().flatten().flatten();
    entries.filter_map(|e| entry(&e.path())).collect()
}

/// Forgets an ADD; one that is not there is fine.
pub(crate) fn remove(cache: &Path, network: &str, container: &str, interface: &str) -> Result<(), CniError> {
    let path = path(cache, network, container, interface);
    pod_supervisor::record::remove_written(&path).map_err(failed(format!("remove {}", path.display())))
}
