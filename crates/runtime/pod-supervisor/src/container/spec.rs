//! `config.json` of a container, as far as it can be carried out here. A part that is not known is refused: whoever wrote it may think that it is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::thread::LinkNameSpaceType;
use seccomp_filter::Filter;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::FILTER;
use crate::cgroups::Resources;
use crate::helper::at;
use crate::process::{self, Process};

/// Name of the file in a bundle.
const CONFIG: &str = "config.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Spec {
    #[serde(rename = "ociVersion")]
    _version: String,
    pub(super) root: Root,
    pub(super) process: Process,
    #[serde(default)]
    pub(super) mounts: Vec<Mount>,
    pub(super) linux: Linux,
    /// For those who look at containers from outside.
    #[serde(default, rename = "annotations")]
    _annotations: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Root {
    /// Below the bundle.
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) readonly: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mount {
    pub(super) destination: PathBuf,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) source: PathBuf,
    #[serde(default)]
    pub(super) options: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Linux {
    namespaces: Vec<Namespace>,
    #[serde(default)]
    pub(super) resources: Resources,
    /// The supervisor names it.
    #[serde(default, rename = "cgroupsPath")]
    _cgroups_path: Option<String>,
    #[serde(default)]
    pub(super) devices: Vec<Device>,
    #[serde(default)]
    pub(super) masked_paths: Vec<PathBuf>,
    #[serde(default)]
    pub(super) readonly_paths: Vec<PathBuf>,
    /// For those who look at containers from outside: its filter is in a file of its own ([`FILTER`]).
    seccomp: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Namespace {
    #[serde(rename = "type")]
    kind: String,
    path: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Device {
    pub(super) path: PathBuf,
    #[serde(rename = "type")]
    pub(super) kind: char,
    #[serde(default)]
    pub(super) major: u32,
    #[serde(default)]
    pub(super) minor: u32,
    pub(super) file_mode: Option<u32>,
    #[serde(default)]
    pub(super) uid: u32,
    #[serde(default)]
    pub(super) gid: u32,
}

impl Spec {
    /// That of a bundle.
    pub(super) fn read(bundle: &Path) -> io::Result<Self> {
        let path = bundle.join(CONFIG);
        let spec: Self = File::open(&path).and_then(process::read).map_err(at(&path))?;
        Ok(spec)
    }

    /// The filter that it is to be held to. One that has a profile, and no filter, is not started.
    pub(super) fn filter(&self, bundle: &Path) -> io::Result<Option<Filter>> {
        self.linux.seccomp.as_ref().map(|_| process::read_filter(&bundle.join(FILTER))).transpose()
    }
}

impl Linux {
    /// Whether it sees its own cgroups alone.
    pub(super) fn own_cgroups(&self) -> bool {
        self.namespaces.iter().any(|n| n.kind == "cgroup")
    }

    /// Namespaces that are joined. Those of mounts and processes are the container's own, always.
    pub(super) fn joined(&self) -> io::Result<Vec<(LinkNameSpaceType, &Path)>> {
        let (mut joined, mut own) = (Vec::new(), Vec::new());
        for Namespace { kind, path } in &self.namespaces {
            match (kind.as_str(), path) {
                ("cgroup" | "mount" | "pid", None) => own.push(kind.as_str()),
                ("network", Some(path)) => joined.push((LinkNameSpaceType::Network, path.as_path())),
                ("ipc", Some(path)) => joined.push((LinkNameSpaceType::InterProcessCommunication, path.as_path())),
                ("uts", Some(path)) => joined.push((LinkNameSpaceType::HostNameAndNISDomainName, path.as_path())),
                _ => return Err(io::Error::other(format!("a namespace that is not made here: {kind} {path:?}"))),
            }
        }
        let both = ["mount", "pid"].iter().all(|kind| own.contains(kind));
        both.then_some(joined).ok_or_else(|| io::Error::other("no mounts or processes of its own"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(more: &str, namespaces: &str) -> serde_json::Result<Spec> {
        let text = format!(
            r#"{{"ociVersion": "1.0.2", "root": {{"path": "rootfs"}}, "annotations": {{"a": "b"}},
            "process": {{"args": ["a"], "cwd": "/", "user": {{"uid": 0, "gid": 0}},
                "capabilities": {{"bounding": [], "effective": [], "permitted": []}}}},
            "linux": {{"namespaces": {namespaces}{more}}}}}"#
        );
        serde_json::from_str(&text)
    }

    #[test]
    fn a_part_that_is_not_known_is_refused() {
        assert!(spec("", "[]").is_ok());
        for more in [r#", "rootfsPropagation": "rshared""#, r#", "sysctl": {}"#, r#", "uidMappings": []"#] {
            assert!(spec(more, "[]").unwrap_err().to_string().contains("unknown field"), "{more}");
        }
    }

    #[test]
    fn one_with_a_profile_has_a_filter_or_is_not_started() {
        let bundle = tempfile::tempdir().expect("folder");
        let of = |more: &str| spec(more, "[]").expect("a spec").filter(bundle.path());
        assert_eq!(of("").expect("none"), None);
        let missing = of(r#", "seccomp": {"defaultAction": "SCMP_ACT_ERRNO"}"#).expect_err("no file");
        assert!(missing.to_string().contains(FILTER), "{missing}");
        std::fs::write(bundle.path().join(FILTER), r#"{"flags": 0, "program": [[6, 0, 0, 0]]}"#).expect("file");
        assert_eq!(of(r#", "seccomp": {}"#).expect("a filter").expect("one").program.len(), 1);
        assert_eq!(of("").expect("none"), None);
    }

    #[test]
    fn mounts_and_processes_are_its_own_and_the_rest_the_pods() {
        let joined = |namespaces: &str| {
            let spec = spec("", namespaces).expect("a spec");
            spec.linux
                .joined()
                .map(|all| all.into_iter().map(|(_, path)| path.display().to_string()).collect::<Vec<_>>())
        };
        let both = r#"{"type": "mount"}, {"type": "pid"}"#;
        assert_eq!(joined(&format!(r#"[{both}, {{"type": "uts", "path": "/u"}}]"#)).expect("all"), ["/u"]);
        for bad in [
            "[]".to_owned(),
            r#"[{"type": "mount"}]"#.to_owned(),
            format!(r#"[{both}, {{"type": "user", "path": "/u"}}]"#),
            format!(r#"[{both}, {{"type": "network"}}]"#),
            r#"[{"type": "mount"}, {"type": "pid", "path": "/p"}]"#.to_owned(),
        ] {
            assert!(joined(&bad).is_err(), "{bad}");
        }
    }
}
