//! iSCSI disks: how they are asked for with `iscsiadm`, and by what names they are known.
//!
//! Names, directories, `iscsi.json` and the calls are a kubelet's, so that either takes over what the other left.

use std::collections::BTreeMap;

use model::core::{ISCSIPersistentVolumeSource, ISCSIVolumeSource, SecretReference};

use crate::names::as_argument;

/// Exit code of `iscsiadm`: no such session.
pub const NO_SESSION: i32 = 2;
/// Exit code of `iscsiadm` that shows an interface: there is none of this name.
pub const NO_IFACE: i32 = 6;
/// Exit code of `iscsiadm`: there is one already.
pub const EXISTS: i32 = 15;
/// Exit code of `iscsiadm`: no such record, target, session or portal.
pub const NO_OBJECTS: i32 = 21;

const PORT: &str = "3260";
const DISCOVERY_KEYS: [&str; 4] = ["auth.username", "auth.password", "auth.username_in", "auth.password_in"];

/// Arguments of one call of `iscsiadm`.
pub type Arguments = Vec<String>;

/// A disk of an iSCSI target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iscsi {
    /// The first portal as it is written.
    pub target: String,
    /// All portals, with ports, each once; never empty.
    pub portals: Vec<String>,
    /// Name of the target.
    pub iqn: String,
    /// Number of the disk.
    pub lun: i32,
    /// Interface of the host that is configured.
    pub init_iface: String,
    /// Interface that is used: the same, or one made for the initiator name.
    pub iface: String,
    /// Name of the initiator; empty: the host's.
    pub initiator: String,
    /// File system; empty: ext4.
    pub fs_type: String,
    /// The portals are only asked with a name and password.
    pub chap_discovery: bool,
    /// Sessions are only begun with a name and password.
    pub chap_session: bool,
    /// Where these are, as (namespace, name); no namespace: the pod's.
    pub secret: Option<(Option<String>, String)>,
}

/// What a node must know to take a disk away again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// All portals, each once.
    pub portals: Vec<String>,
    /// Name of the target.
    pub iqn: String,
    /// Number of the disk.
    pub lun: i32,
    /// Interface; `None`: nobody knows.
    pub iface: Option<String>,
    /// The interface was made for this disk and goes with it.
    pub owns_iface: bool,
}

/// A call, and what its failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Of `iscsiadm`.
    pub arguments: Arguments,
    /// What a failure means.
    pub failure: Failure,
}

/// What the failure of a call means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing.
    Ignored,
    /// The portal is of no help now: why, and the call that takes back what was begun.
    Ends(&'static str, Option<Arguments>),
}

fn with_port(portal: &str) -> String {
    if portal.contains(':') { portal.to_owned() } else { format!("{portal}:{PORT}") }
}

fn show(iface: &str) -> Arguments {
    arguments(&["-m", "iface", "-I", iface, "-o", "show"])
}

fn arguments(words: &[&str]) -> Arguments {
    words.iter().map(|w| (*w).to_owned()).collect()
}

impl Iscsi {
    /// The disk of a PersistentVolume of this name.
    #[must_use]
    pub fn new(name: &str, of: &ISCSIPersistentVolumeSource) -> Self {
        let secret = |r: &SecretReference| {
            let namespace = r.namespace.clone().filter(|n| !n.is_empty());
            Some((namespace, r.name.clone().filter(|n| !n.is_empty())?))
        };
        let mut portals = Vec::new();
        for portal in std::iter::once(&of.target_portal).chain(of.portals.iter().flatten()).map(|p| with_port(p)) {
            if !portals.contains(&portal) {
                portals.push(portal);
            }
        }
        let init_iface = of.iscsi_interface.clone().filter(|i| !i.is_empty()).unwrap_or_else(|| "default".to_owned());
        let initiator = of.initiator_name.clone().unwrap_or_default();
        let own_iface = || format!("{}:{name}", with_port(&of.target_portal));
        Self {
            target: of.target_portal.clone(),
            portals,
            iqn: of.iqn.clone(),
            lun: of.lun,
            iface: if initiator.is_empty() { init_iface.clone() } else { own_iface() },
            init_iface,
            initiator,
            fs_type: of.fs_type.clone().unwrap_or_default(),
            chap_discovery: of.chap_auth_discovery.unwrap_or(false),
            chap_session: of.chap_auth_session.unwrap_or(false),
            secret: of.secret_ref.as_ref().and_then(secret),
        }
    }

    /// The disk of a volume of this name that stands in a pod.
    #[must_use]
    pub fn of_volume(name: &str, of: &ISCSIVolumeSource) -> Self {
        let secret_ref =
            of.secret_ref.as_ref().map(|r| SecretReference { name: Some(r.name.clone()), namespace: None });
        let of = of.clone();
        Self::new(
            name,
            &ISCSIPersistentVolumeSource {
                chap_auth_discovery: of.chap_auth_discovery,
                chap_auth_session: of.chap_auth_session,
                fs_type: of.fs_type,
                initiator_name: of.initiator_name,
                iqn: of.iqn,
                iscsi_interface: of.iscsi_interface,
                lun: of.lun,
                portals: of.portals,
                read_only: of.read_only,
                secret_ref,
                target_portal: of.target_portal,
            },
        )
    }

    /// Refuses what would mean something else to `iscsiadm` than it says.
    ///
    /// # Errors
    /// Which field, and why.
    pub fn checked(self) -> Result<Self, String> {
        let fields = [
            ("iscsi.iqn", &self.iqn),
            ("iscsi.iscsiInterface", &self.init_iface),
            ("iscsi.initiatorName", &self.initiator),
        ];
        let portals = self.portals.iter().map(|portal| ("iscsi.targetPortal", portal));
        fields.into_iter().chain(portals).try_for_each(|(what, text)| as_argument(what, text))?;
        if self.init_iface.contains('/') {
            return Err(format!(
                "iscsi.iscsiInterface {:?} has a '/' in it: it is the name of a file",
                self.init_iface
            ));
        }
        Ok(self)
    }

    /// Names of the directories of the disk, one in the other, below those of its kind.
    #[must_use]
    pub fn dirs(&self) -> Vec<String> {
        let portal = self.portals.first().map_or("", String::as_str);
        vec![format!("iface-{}", self.iface), format!("{portal}-{}-lun-{}", self.iqn, self.lun)]
    }

    /// Name by which the API server knows the disk, after that of its kind.
    #[must_use]
    pub fn attach_name(&self) -> String {
        format!("{}:{}:{}", self.target, self.iqn, self.lun)
    }

    /// `iscsi.json`, of the volume of this name.
    #[must_use]
    pub fn file(&self, name: &str) -> Vec<u8> {
        let file = serde_json::json!({
            "VolName": name,
            "Portals": self.portals,
            "Iqn": self.iqn,
            "Lun": self.lun.to_string(),
            "InitIface": self.init_iface,
            "Iface": self.iface,
            "InitiatorName": self.initiator,
            "MetricsProvider": null,
        });
        format!("{file}\n").into_bytes()
    }

    /// Calls that begin a session with a portal, in their order. `secret`: names and passwords for CHAP.
    #[must_use]
    pub fn login(&self, portal: &str, secret: &BTreeMap<String, String>) -> Vec<Step> {
        let discovery = |more: &[&str]| {
            arguments(&[&["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", &self.iface], more].concat())
        };
        let node = |more: &[&str]| {
            arguments(&[&["-m", "node", "-p", portal, "-T", &self.iqn, "-I", &self.iface], more].concat())
        };
        let step = |arguments, failure| Step { arguments, failure };
        let ends = |text| Failure::Ends(text, None);
        let mut steps = vec![step(discovery(&["-o", "new"]), Failure::Ignored)];
        let sets = |on: &dyn Fn(&[&str]) -> Arguments, is_wanted: bool, prefix: &str, text: &'static str| {
            let method = [(format!("{prefix}.auth.authmethod"), "CHAP".to_owned())];
            let keys = DISCOVERY_KEYS.iter().map(|key| format!("{prefix}.{key}"));
            let values =
                keys.filter_map(|key| secret.get(&key).filter(|v| !v.is_empty()).map(|v| (key.clone(), v.clone())));
            let all = method.into_iter().chain(values).filter(|_| is_wanted);
            all.map(|(key, value)| step(on(&["-o", "update", "-n", &key, "-v", &value]), ends(text)))
                .collect::<Vec<_>>()
        };
        let text = "iscsi: failed to update discoverydb";
        steps.extend(sets(&discovery, self.chap_discovery, "discovery.sendtargets", text));
        let undo = Some(discovery(&["-o", "delete"]));
        steps.push(step(discovery(&["--discover"]), Failure::Ends("iscsi: failed to sendtargets", undo)));
        // What is scanned for is the disk of the volume alone.
        steps.push(step(node(&["-o", "update", "-n", "node.session.scan", "-v", "manual"]), Failure::Ignored));
        steps.extend(sets(&node, self.chap_session, "node.session", "iscsi: failed to update iscsi node"));
        let record = ["-m", "node", "-p", portal, "-I", &self.iface, "-T", &self.iqn, "-o", "delete"];
        let undo = Some(arguments(&record));
        steps.push(step(node(&["--login"]), Failure::Ends("iscsi: failed to attach disk", undo)));
        let startup =
            ["-m", "node", "-p", portal, "-T", &self.iqn, "-o", "update", "-n", "node.startup", "-v", "manual"];
        steps.push(step(arguments(&startup), Failure::Ignored));
        steps
    }

    /// The call that shows the interface that is configured.
    #[must_use]
    pub fn show_iface(&self) -> Arguments {
        show(&self.init_iface)
    }

    /// Calls that make an interface for the initiator name, which has all else of the one that was shown: the first makes it, where
    /// [`EXISTS`] is no failure, the others set it up.
    ///
    /// # Errors
    /// What was shown is no interface, or its own.
    pub fn clone_iface(&self, shown: &str) -> Result<Vec<Arguments>, String> {
        if self.init_iface == self.iface {
            return Err(format!("iscsi: cannot clone iface with same name: {}", self.iface));
        }
        let mut settings = BTreeMap::new();
        for line in shown.lines().filter(|l| l.starts_with("iface.") && !l.contains("<empty>")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [key, "=", value] = words[..] else {
                return Err(format!("iscsi: failed to parse iface records: invalid iface setting: {line}"));
            };
            settings.insert(key, value);
        }
        settings.remove("iface.iscsi_ifacename");
        settings.insert("iface.initiatorname", &self.initiator);
        let on = ["-m", "iface", "-I", &self.iface, "-o"];
        let new = arguments(&[&on[..], &["new"]].concat());
        let sets = settings
            .into_iter()
            .map(|(key, value)| arguments(&[&on[..], &["update", "-n", key, "-v", value]].concat()));
        Ok(std::iter::once(new).chain(sets).collect())
    }

    /// The call that takes the interface away; `None`: it is the host's own.
    #[must_use]
    pub fn delete_iface(&self) -> Option<Arguments> {
        (!self.initiator.is_empty()).then(|| arguments(&["-m", "iface", "-I", &self.iface, "-o", "delete"]))
    }

    /// Which of these names below `/dev/disk/by-path` is the disk by a portal. `transport`: of the interface.
    #[must_use]
    pub fn link<'a>(&self, portal: &str, transport: &str, mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let address = if portal.starts_with('[') { portal.replace(['[', ']'], "") } else { portal.to_owned() };
        let end = format!("ip-{address}-iscsi-{}-lun-{}", self.iqn, self.lun);
        let is_it = |name: &&str| match transport {
            "tcp" => *name == end,
            // Of other transports the name of the adapter comes first.
            _ => name.starts_with("pci-") && name.strip_suffix(&end).is_some_and(|before| before.ends_with('-')),
        };
        names.find(is_it)
    }
}

/// Transport of the interface that was shown.
///
/// # Errors
/// It has none.
pub fn transport(iface: &str, shown: &str) -> Result<String, String> {
    let found = shown.lines().find_map(|line| line.strip_prefix("iface.transport_name = "));
    match found.map(str::trim) {
        Some("<empty>") => Ok("tcp".to_owned()),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(format!("could not parse iface file for {iface}")),
    }
}

/// Reads `iscsi.json`.
///
/// # Errors
/// It is none.
pub fn read(text: &[u8]) -> Result<Config, String> {
    let fields: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| format!("iscsi.json cannot be read: {e}"))?;
    let field = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let mut portals: Vec<String> = Vec::new();
    for portal in fields["Portals"].as_array().into_iter().flatten().filter_map(|p| p.as_str()) {
        if !portal.is_empty() && !portals.iter().any(|p| p == portal) {
            portals.push(portal.to_owned());
        }
    }
    let (iqn, iface, lun) = (field("Iqn"), field("Iface"), field("Lun"));
    let Some(first) = portals.first().filter(|_| !iqn.is_empty()) else {
        return Err("iscsi.json names no portal or target".to_owned());
    };
    let owns_iface = !field("InitiatorName").is_empty() && iface == format!("{first}:{}", field("VolName"));
    let lun = lun.parse().map_err(|_| format!("lun is not a number: {lun}"))?;
    Ok(Config { portals, iqn, lun, iface: Some(iface).filter(|i| !i.is_empty()), owns_iface })
}

/// What the directories of a disk say of it.
#[must_use]
pub fn of_dirs(iface: &str, disk: &str) -> Option<Config> {
    let (target, lun) = disk.rsplit_once("-lun-")?;
    let at = target.find("iqn.").or_else(|| target.find("eui.")).or_else(|| target.find("naa."))?;
    let portal = target[..at].strip_suffix('-').filter(|p| !p.is_empty())?;
    let iface = iface.strip_prefix("iface-").map(str::to_owned);
    Some(Config {
        portals: vec![portal.to_owned()],
        iqn: target[at..].to_owned(),
        lun: lun.parse().ok()?,
        iface,
        owns_iface: false,
    })
}

impl Config {
    /// Whether the directory of this name is of a disk by the same portal and target.
    #[must_use]
    pub fn shares_session(&self, disk: &str) -> bool {
        let Some(portal) = self.portals.first() else { return false };
        let before = disk.rsplit_once("-lun-").map(|(before, _)| before);
        before
            .is_some_and(|b| b.strip_prefix(portal.as_str()).and_then(|rest| rest.strip_prefix('-')) == Some(&self.iqn))
    }

    /// Calls that end all sessions and forget the records, in their order; [`NO_SESSION`] and [`NO_OBJECTS`] are no failures.
    #[must_use]
    pub fn logout(&self) -> Vec<Arguments> {
        let iface: Vec<&str> = self.iface.iter().flat_map(|i| ["-I", i]).collect();
        let mut calls = Vec::new();
        for portal in &self.portals {
            let node = ["-m", "node", "-p", portal, "-T", &self.iqn];
            calls.push(arguments(&[&node[..], &["--logout"], &iface].concat()));
            calls.push(arguments(&[&node[..], &["-o", "delete"], &iface].concat()));
        }
        calls.extend(self.delete_iface());
        calls
    }

    /// The call that shows the interface, [`NO_IFACE`] when it is gone; `None`: nobody knows it.
    #[must_use]
    pub fn show_iface(&self) -> Option<Arguments> {
        self.iface.as_deref().map(show)
    }

    /// The same where nobody knows the interface: sessions end by whichever they were begun.
    #[must_use]
    pub fn by_any_iface(self) -> Self {
        Self { iface: None, owns_iface: false, ..self }
    }

    /// The call that takes away the interface that was made for the disk; `None`: none was.
    #[must_use]
    pub fn delete_iface(&self) -> Option<Arguments> {
        let own = self.iface.as_ref().filter(|_| self.owns_iface)?;
        Some(arguments(&["-m", "iface", "-I", own, "-o", "delete"]))
    }
}
