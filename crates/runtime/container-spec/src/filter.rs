//! A seccomp profile as a program for the kernel: for a call by its number and arguments it answers what the profile says, read as `runc` with libseccomp
//! reads it, which is what profiles are written for. Where what libseccomp makes of one is not what is written, or not known, no filter is made.
//!
//! - A profile goes by names. On each ABI that it lists (the node's own always), a name has a number or is not there.
//! - Two conditions on one argument are two rules, of which either suffices (`runc`); else all conditions of a rule have to hold.
//! - A call of another architecture kills the thread (libseccomp's action for a bad one).
//! - Where what is not named is refused, calls behind the last number that the profile names answer ENOSYS (`runc`), so that programs that are newer than
//!   the profile fall back.

mod abi;
mod code;
mod machine;
mod rules;
#[cfg(test)]
mod tests;

use oci_spec::runtime::{LinuxSeccomp, LinuxSeccompFilterFlag};
use seccomp_filter::{Filter, MAX_PROGRAM};

use machine::Machine;
use rules::{Answers, KILL_THREAD};

/// `SECCOMP_FILTER_FLAG_LOG` and `SECCOMP_FILTER_FLAG_SPEC_ALLOW`.
const LOG: u32 = 1 << 1;
const SPEC_ALLOW: u32 = 1 << 2;

/// The filter of a profile on a node of an architecture (`x86_64`, `aarch64`), to be loaded into all that becomes a process of the container. `None`: one
/// that only an OCI runtime makes.
#[must_use]
pub fn profile_filter(profile: &LinuxSeccomp, architecture: &str) -> Option<Filter> {
    if profile.listener_path().is_some() || profile.listener_metadata().is_some() {
        return None;
    }
    let flags = flags(profile.flags().as_deref())?;
    let machines = Machine::of(architecture, profile.architectures().as_deref().unwrap_or_default())?;
    let mut sections = Vec::new();
    for machine in &machines {
        let ranges = machine.ranges(|abi| Answers::of(profile, abi))?;
        sections.push((machine.audit, code::section(&ranges)?));
    }
    let program = code::program(&sections, KILL_THREAD);
    (program.len() <= MAX_PROGRAM).then_some(Filter { flags, program })
}

/// Where none are said, and not even that there are none, mitigations of speculative execution are not forced on (`runc`).
fn flags(said: Option<&[LinuxSeccompFilterFlag]>) -> Option<u32> {
    let Some(said) = said else { return Some(SPEC_ALLOW) };
    said.iter().try_fold(0, |all, flag| match flag {
        LinuxSeccompFilterFlag::SeccompFilterFlagLog => Some(all | LOG),
        LinuxSeccompFilterFlag::SeccompFilterFlagSpecAllow => Some(all | SPEC_ALLOW),
        // There is one thread.
        LinuxSeccompFilterFlag::SeccompFilterFlagTsync => Some(all),
        // For profiles that ask somebody.
        LinuxSeccompFilterFlag::SeccompFilterFlagWaitKillableRecv => None,
    })
}
