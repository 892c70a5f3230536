//! The machine as a whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::Timestamp;
use model::reading::{CgroupReading, Depth, MachineReading};
use ports::host::{HostInfo, HostResult, NodeHost};

use super::parse;
use crate::LinuxInfo;

pub(super) fn read(info: &LinuxInfo, proc: &Path, sys: &Path) -> HostResult<MachineReading> {
    let identity = info.identity();
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    let booted = parse::pairs(&stat).find_map(|(key, secs)| (key == "btime").then_some(secs));
    let (cores, sockets) = topology(sys);
    Ok(MachineReading {
        booted: booted.map_or(Timestamp::ZERO, |s| Timestamp::from_secs(i64::try_from(s).unwrap_or(0))),
        memory_bytes: info.memory_total_bytes()?,
        swap_bytes: info.swap_total_bytes()?,
        cpus: info.cpu_count(),
        cores,
        sockets,
        machine_id: identity.machine_id,
        system_uuid: identity.system_uuid,
        boot_id: identity.boot_id,
        kernel_version: identity.kernel_version,
        os_image: identity.os_image,
    })
}

/// Cores and sockets, by what the kernel says of each processor.
fn topology(sys: &Path) -> (Option<u32>, Option<u32>) {
    let (mut cores, mut sockets) = (BTreeSet::new(), BTreeSet::new());
    let Ok(entries) = fs::read_dir(sys.join("devices/system/cpu")) else { return (None, None) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix("cpu"));
        if number.is_none_or(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        let id = |file: &str| {
            let text = fs::read_to_string(entry.path().join("topology").join(file)).ok()?;
            text.trim().parse::<i64>().ok()
        };
        let (Some(socket), Some(core)) = (id("physical_package_id"), id("core_id")) else { continue };
        sockets.insert(socket);
        cores.insert((socket, core));
    }
    let count = |n: usize| u32::try_from(n).ok().filter(|n| *n > 0);
    (count(cores.len()), count(sockets.len()))
}

/// The root cgroup lacks files that the machine as a whole has elsewhere.
pub(super) fn complete_root(info: &LinuxInfo, proc: &Path, depth: Depth, reading: &mut CgroupReading) {
    let memory = &mut reading.memory;
    if memory.usage.is_none() {
        memory.usage = memory.rss.zip(memory.cache).map(|(anon, file)| anon.saturating_add(file));
    }
    if memory.swap.is_none() {
        memory.swap = info.meminfo().ok().map(|m| m.swap_total.saturating_sub(m.swap_free));
    }
    if depth >= Depth::Summary {
        let pressure =
            |file: &str| fs::read_to_string(proc.join("pressure").join(file)).ok().as_deref().and_then(parse::psi);
        let fill = |psi: &mut Option<_>, file: &str| {
            if psi.is_none() {
                *psi = pressure(file);
            }
        };
        fill(&mut reading.cpu.psi, "cpu");
        fill(&mut reading.memory.psi, "memory");
        fill(&mut reading.io_psi, "io");
    }
}

/// The cgroup of this process: on v1 only when processor and memory agree, and never the root.
pub(super) fn own_cgroup(proc: &Path, unified: bool) -> Option<String> {
    let own: procfs::ProcessCGroups = crate::parsed(&proc.join("self/cgroup")).ok()?;
    let path_of = |controller: &str| crate::cgroup::path_of(&own, controller);
    let path = if unified { path_of("")? } else { path_of("cpuacct").filter(|cpu| path_of("memory") == Some(cpu))? };
    (path != "/").then(|| path.to_owned())
}
