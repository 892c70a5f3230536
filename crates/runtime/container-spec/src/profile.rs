//! The default seccomp profile, made from the lists in `seccomp_default.json`.

use std::collections::BTreeMap;

use oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompArgBuilder, LinuxSeccompBuilder,
    LinuxSeccompOperator, LinuxSyscall, LinuxSyscallBuilder,
};

use crate::{CapabilityNames, SpecError};

const LISTS: &str = include_str!("seccomp_default.json");

/// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (sched.h).
const NEW_NAMESPACES: u64 = 0x7e02_0000;
const ENOSYS: u32 = 38;
/// Address families (socket.h) that a container does not get: crypto of the kernel, and hypervisors.
const AF_ALG: u64 = 38;
const AF_VSOCK: u64 = 40;
/// Linux, 32-bit addresses, UNAME26 and both, and "only ask" (personality.h).
const PERSONALITIES: [u64; 5] = [0, 0x0008, 0x0002_0000, 0x0002_0008, 0xffff_ffff];

#[derive(serde::Deserialize)]
struct Lists {
    allowed: Vec<String>,
    allowed_since_linux_4_8: Vec<String>,
    allowed_by_architecture: BTreeMap<String, Vec<String>>,
    allowed_with_capability: BTreeMap<String, Vec<String>>,
}

/// The profile for a process with these capabilities on this architecture: what is not named answers EPERM.
///
/// # Errors
/// [`SpecError::Built`], if the data in this crate were damaged.
pub(crate) fn default_profile(names: &CapabilityNames, architecture: &str) -> Result<LinuxSeccomp, SpecError> {
    let lists: Lists = serde_json::from_str(LISTS).map_err(|e| SpecError::Built(e.to_string()))?;
    let mut allowed = lists.allowed;
    allowed.extend(lists.allowed_since_linux_4_8);
    allowed.extend(lists.allowed_by_architecture.get(architecture).into_iter().flatten().cloned());
    let granted = lists.allowed_with_capability.iter().filter(|(capability, _)| names.contains(*capability));
    allowed.extend(granted.flat_map(|(_, calls)| calls.clone()));
    allowed.sort();
    allowed.dedup();
    let mut calls = vec![allow(allowed, None)?];
    calls.extend(sockets()?);
    for value in PERSONALITIES {
        calls.push(allow(vec!["personality".into()], Some(arg(value, None, LinuxSeccompOperator::ScmpCmpEq)?))?);
    }
    if !names.contains("CAP_SYS_ADMIN") {
        calls.extend(clone_without_namespaces()?);
    }
    let profile = LinuxSeccompBuilder::default()
        .default_action(LinuxSeccompAction::ScmpActErrno)
        .architectures(architectures(architecture))
        .syscalls(calls);
    Ok(profile.build()?)
}

fn architectures(name: &str) -> Vec<Arch> {
    match name {
        "x86_64" => vec![Arch::ScmpArchX86_64, Arch::ScmpArchX86, Arch::ScmpArchX32],
        "aarch64" => vec![Arch::ScmpArchArm, Arch::ScmpArchAarch64],
        // The native one alone.
        _ => Vec::new(),
    }
}

fn allow(names: Vec<String>, arg: Option<LinuxSeccompArg>) -> Result<LinuxSyscall, SpecError> {
    let call = LinuxSyscallBuilder::default().names(names).action(LinuxSeccompAction::ScmpActAllow);
    Ok(match arg {
        Some(arg) => call.args(vec![arg]).build()?,
        None => call.build()?,
    })
}

fn arg(value: u64, second: Option<u64>, op: LinuxSeccompOperator) -> Result<LinuxSeccompArg, SpecError> {
    let arg = LinuxSeccompArgBuilder::default().index(0_usize).value(value).op(op);
    Ok(match second {
        Some(second) => arg.value_two(second).build()?,
        None => arg.build()?,
    })
}

/// Each family but two, said as three ranges: an OCI runtime makes of two conditions on one argument two rules of which either
/// suffices, so "neither A nor B" would allow both.
fn sockets() -> Result<Vec<LinuxSyscall>, SpecError> {
    let ranges = [
        (AF_ALG, LinuxSeccompOperator::ScmpCmpLt),
        (AF_ALG + 1, LinuxSeccompOperator::ScmpCmpEq),
        (AF_VSOCK, LinuxSeccompOperator::ScmpCmpGt),
    ];
    ranges.into_iter().map(|(value, op)| allow(vec!["socket".into()], Some(arg(value, None, op)?))).collect()
}

/// `clone` without new namespaces; `clone3`, whose flags a filter cannot see, is "not there", so that libraries fall back.
fn clone_without_namespaces() -> Result<[LinuxSyscall; 2], SpecError> {
    let masked = arg(NEW_NAMESPACES, Some(0), LinuxSeccompOperator::ScmpCmpMaskedEq)?;
    let clone3 = LinuxSyscallBuilder::default()
        .names(vec!["clone3".to_owned()])
        .action(LinuxSeccompAction::ScmpActErrno)
        .errno_ret(ENOSYS);
    Ok([allow(vec!["clone".into()], Some(masked))?, clone3.build()?])
}
