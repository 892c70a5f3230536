//! The form of a file (CDI's `SPEC.md`), and what must hold of it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Versions whose fields are all known here.
const VERSIONS: [&str; 10] = ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

/// A file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SpecFile {
    cdi_version: String,
    /// `vendor/class`.
    kind: String,
    #[serde(default, rename = "annotations")]
    _annotations: serde::de::IgnoredAny,
    pub(crate) devices: Vec<Device>,
    /// For every device of the file.
    #[serde(default)]
    pub(crate) container_edits: Edits,
}

/// A device of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Device {
    name: String,
    #[serde(default, rename = "annotations")]
    _annotations: serde::de::IgnoredAny,
    pub(crate) container_edits: Edits,
}

/// What a container gets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Edits {
    pub(crate) env: Vec<String>,
    /// Nodes in `/dev`, or elsewhere.
    pub device_nodes: Vec<NodeEdit>,
    pub(crate) net_devices: Vec<NetDevice>,
    pub(crate) mounts: Vec<MountEdit>,
    pub(crate) hooks: Vec<HookEdit>,
    #[serde(rename = "additionalGids")]
    pub(crate) additional_gids: Vec<u32>,
    pub(crate) intel_rdt: Option<IntelRdt>,
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeEdit {
    /// In the container.
    pub path: PathBuf,
    /// On the node; as `path` where nothing is said.
    pub host_path: Option<PathBuf>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) major: i64,
    pub(crate) minor: i64,
    pub(crate) file_mode: Option<u32>,
    pub(crate) permissions: String,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

impl NodeEdit {
    /// Where it is on the node.
    #[must_use]
    pub fn source(&self) -> &Path {
        self.host_path.as_deref().filter(|p| !p.as_os_str().is_empty()).unwrap_or(&self.path)
    }

    /// Kind and number stand in the file: nobody has to look at the node.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.kind.is_empty() && (self.major != 0 || self.kind == "p")
    }
}

/// A network interface of the node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NetDevice {
    pub(crate) host_interface_name: String,
    pub(crate) name: String,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct MountEdit {
    pub(crate) host_path: PathBuf,
    pub(crate) container_path: PathBuf,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
}

/// A program that the OCI runtime starts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HookEdit {
    pub(crate) hook_name: HookName,
    pub(crate) path: PathBuf,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: Vec<String>,
    #[serde(default)]
    pub(crate) timeout: Option<i64>,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum HookName {
    Prestart,
    CreateRuntime,
    CreateContainer,
    StartContainer,
    Poststart,
    Poststop,
}

/// A class of Intel's resource director.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IntelRdt {
    #[serde(rename = "closID")]
    pub(crate) clos_id: String,
    #[serde(rename = "l3CacheSchema")]
    pub(crate) l3_cache_schema: String,
    #[serde(rename = "memBwSchema")]
    pub(crate) mem_bw_schema: String,
    pub(crate) schemata: Vec<String>,
    #[serde(rename = "enableCMT")]
    pub(crate) cmt: bool,
    #[serde(rename = "enableMBM")]
    pub(crate) mbm: bool,
    #[serde(rename = "enableMonitoring")]
    pub(crate) monitoring: bool,
}

impl SpecFile {
    /// Reads a file by what its name ends with.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let file: Self = if path.extension().is_some_and(|e| e == "json") {
            serde_json::from_str(text).map_err(|e| e.to_string())?
        } else {
            serde_saphyr::from_str(text).map_err(|e| e.to_string())?
        };
        file.check()?;
        Ok(file)
    }

    /// `vendor/class=name` of each device.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.devices.iter().map(|d| format!("{}={}", self.kind, d.name))
    }

    fn check(&self) -> Result<(), String> {
        if !VERSIONS.contains(&self.cdi_version.trim_start_matches('v')) {
            return Err(format!("cdiVersion {:?} is not known (known: {})", self.cdi_version, VERSIONS.join(", ")));
        }
        let (vendor, class) = self.kind.split_once('/').unwrap_or_default();
        if !is_name(vendor, "_-.") || !is_name(class, "_-.") {
            return Err(format!("kind {:?} is not VENDOR/CLASS", self.kind));
        }
        if self.devices.is_empty() {
            return Err("it has no devices".to_owned());
        }
        let mut names: Vec<&str> = self.devices.iter().map(|d| d.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("device {:?} is in it twice", twice[0]));
        }
        self.container_edits.check().map_err(|why| format!("containerEdits: {why}"))?;
        for device in &self.devices {
            let wrong = |why: String| format!("device {:?}: {why}", device.name);
            if !is_device_name(&device.name) {
                return Err(wrong("not a name of letters, digits, _, -, . and :".to_owned()));
            }
            if device.container_edits == Edits::default() {
                return Err(wrong("containerEdits are empty".to_owned()));
            }
            device.container_edits.check().map_err(wrong)?;
        }
        Ok(())
    }
}

/// Begins with a letter, ends with a letter or a digit.
fn is_name(name: &str, between: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && is_plain(name, between)
}

fn is_device_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_plain(name, "_-.:")
}

fn is_plain(name: &str, between: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || between.contains(c))
}

impl Edits {
    /// Puts others behind these.
    pub(crate) fn append(&mut self, other: &Self) {
        self.env.extend_from_slice(&other.env);
        self.device_nodes.extend_from_slice(&other.device_nodes);
        self.net_devices.extend_from_slice(&other.net_devices);
        self.mounts.extend_from_slice(&other.mounts);
        self.hooks.extend_from_slice(&other.hooks);
        self.additional_gids.extend_from_slice(&other.additional_gids);
        if other.intel_rdt.is_some() {
            self.intel_rdt.clone_from(&other.intel_rdt);
        }
    }

    fn check(&self) -> Result<(), String> {
        variables(&self.env)?;
        for node in &self.device_nodes {
            let path = node.path.display();
            if node.path.as_os_str().is_empty() {
                return Err("deviceNodes: a path is empty".to_owned());
            }
            if !["", "b", "c", "u", "p"].contains(&node.kind.as_str()) {
                return Err(format!("deviceNodes: {path}: type {:?} (allowed: b, c, u, p)", node.kind));
            }
            if node.permissions != "none" && !node.permissions.chars().all(|c| "rwm".contains(c)) {
                let said = &node.permissions;
                return Err(format!("deviceNodes: {path}: permissions {said:?} (allowed: of r, w and m; none)"));
            }
        }
        if self.mounts.iter().any(|m| m.host_path.as_os_str().is_empty() || m.container_path.as_os_str().is_empty()) {
            return Err("mounts: hostPath or containerPath is empty".to_owned());
        }
        for hook in &self.hooks {
            if hook.path.as_os_str().is_empty() {
                return Err("hooks: a path is empty".to_owned());
            }
            variables(&hook.env)?;
        }
        let class = self.intel_rdt.as_ref().map_or("", |r| &r.clos_id);
        if class != "/" && (class.len() >= 4096 || [".", ".."].contains(&class) || class.contains(['/', '\n'])) {
            return Err(format!("intelRdt: closID {class:?} is no name of a folder"));
        }
        if self.net_devices.iter().any(|d| d.name.is_empty() || d.host_interface_name.is_empty()) {
            return Err("netDevices: a name is empty".to_owned());
        }
        Ok(())
    }
}

fn variables(env: &[String]) -> Result<(), String> {
    let wrong = env.iter().find(|v| v.find('=').is_none_or(|at| at == 0));
    wrong.map_or(Ok(()), |v| Err(format!("env: {v:?} is not NAME=VALUE")))
}
