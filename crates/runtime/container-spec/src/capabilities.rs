//! Capabilities of a container's process.

use std::collections::BTreeSet;
use std::str::FromStr;

use cri_api::v1;
use oci_spec::runtime::{Capabilities, Capability, LinuxCapabilities, LinuxCapabilitiesBuilder};

use crate::SpecError;

/// Names such as `CAP_CHOWN`.
pub type CapabilityNames = BTreeSet<String>;

/// What a container has that asks for nothing: containerd's and Docker's list.
const DEFAULT: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const ALL: &str = "ALL";

/// The names that a container gets. `ALL` counts first, single names after it, so that `add: [ALL], drop: [CHOWN]` is all but one,
/// and of a name that is added and dropped nothing is left.
///
/// # Errors
/// A name that is no capability.
pub(crate) fn names(
    wanted: Option<&v1::Capability>,
    privileged: bool,
    every: &CapabilityNames,
) -> Result<CapabilityNames, SpecError> {
    if privileged {
        return Ok(every.clone());
    }
    let mut names: CapabilityNames = DEFAULT.iter().map(|n| format!("CAP_{n}")).collect();
    let Some(wanted) = wanted else { return Ok(names) };
    let has_all = |list: &[String]| list.iter().any(|n| n.eq_ignore_ascii_case(ALL));
    if has_all(&wanted.add_capabilities) {
        names.clone_from(every);
    }
    if has_all(&wanted.drop_capabilities) {
        names.clear();
    }
    for name in single(&wanted.add_capabilities) {
        names.insert(known(&name)?);
    }
    for name in single(&wanted.drop_capabilities) {
        names.remove(&known(&name)?);
    }
    Ok(names)
}

fn single(list: &[String]) -> impl Iterator<Item = String> + '_ {
    list.iter().filter(|n| !n.eq_ignore_ascii_case(ALL)).map(|n| n.to_ascii_uppercase())
}

/// `CHOWN` or `CAP_CHOWN` to `CAP_CHOWN`.
fn known(name: &str) -> Result<String, SpecError> {
    let bare = name.strip_prefix("CAP_").unwrap_or(name);
    match Capability::from_str(bare) {
        Ok(_) => Ok(format!("CAP_{bare}")),
        Err(_) => Err(SpecError::UnknownCapability(name.to_owned())),
    }
}

/// The sets of a process: what it is bounded by, it has. Nothing is inheritable, as containerd has it since CVE-2022-24769;
/// ambient are those that are asked for and held (`add_ambient_capabilities`), none by default.
///
/// # Errors
/// A name that is no capability.
pub(crate) fn sets(names: &CapabilityNames, wanted: Option<&v1::Capability>) -> Result<LinuxCapabilities, SpecError> {
    let set = |names: &mut dyn Iterator<Item = String>| -> Result<Capabilities, SpecError> {
        names.map(|n| parse(&n)).collect()
    };
    let all = set(&mut names.iter().cloned())?;
    let mut ambient = Capabilities::new();
    for name in wanted.into_iter().flat_map(|w| single(&w.add_ambient_capabilities)) {
        let name = known(&name)?;
        if names.contains(&name) {
            ambient.insert(parse(&name)?);
        }
    }
    let inheritable = ambient.clone();
    Ok(LinuxCapabilitiesBuilder::default()
        .bounding(all.clone())
        .effective(all.clone())
        .permitted(all)
        .inheritable(inheritable)
        .ambient(ambient)
        .build()?)
}

fn parse(name: &str) -> Result<Capability, SpecError> {
    let bare = name.strip_prefix("CAP_").unwrap_or(name);
    Capability::from_str(bare).map_err(|_| SpecError::UnknownCapability(name.to_owned()))
}
