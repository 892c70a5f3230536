//! Disks of pods behind a target that the host reaches over a network: the kernel and `iscsiadm` are [`fakes::luns`].

use std::path::Path;

use fakes::MemFs;
use fakes::luns::{IQN, TARGET};
use ports::host::HostFs;
use serde_json::{Value, json};
use sim::{DISK, SimNode};

use crate::drivers;

/// The host has the programs for such disks, and no others.
pub(crate) fn serve(host: &MemFs) {
    let has = |line: &str| ["iscsiadm ", "blockdev ", "write "].iter().any(|program| line.starts_with(program));
    host.play_programs(move |fs, line| has(line).then(|| fakes::luns::target(fs, line)));
}

/// The volume of a pod that is this disk of the target.
pub(crate) fn volume(lun: usize) -> Value {
    json!({ "name": "lun", "iscsi": { "targetPortal": TARGET, "iqn": IQN, "lun": lun, "fsType": "ext4" } })
}

/// What the Node calls it.
pub(crate) fn unique_name(lun: usize) -> String {
    format!("kubernetes.io/iscsi/{TARGET}:{IQN}:{lun}")
}

/// Whether the kernel has these disks and no others, each is mounted once for the node, and the session is there.
pub(crate) fn disks_are(node: &SimNode, luns: &[usize]) -> Result<(), String> {
    let names = |path: &Path| -> Vec<String> {
        let entries = node.world.files.list_dir(path).unwrap_or_default();
        let mut names: Vec<String> = entries.into_iter().map(|e| e.name).collect();
        names.sort();
        names
    };
    let sorted = |name: &dyn Fn(&usize) -> String| {
        let mut names: Vec<String> = luns.iter().map(name).collect();
        names.sort();
        names
    };
    let mounted = Path::new(DISK).join("root/plugins/kubernetes.io/iscsi/iface-default");
    let disks = sorted(&|lun| format!("sd1{lun}"));
    let at = sorted(&|lun| format!("{TARGET}:3260-{IQN}-lun-{lun}"));
    for (what, found, wanted) in
        [("disks of the kernel", names(Path::new("/sys/block")), disks), ("mounted disks", names(&mounted), at)]
    {
        if found != wanted {
            return Err(format!("{what}: {found:?}, not {wanted:?}"));
        }
    }
    if let Some(lun) = luns.iter().find(|lun| !drivers::in_use(node).contains(&unique_name(**lun))) {
        return Err(format!("the Node does not say that it uses disk {lun}"));
    }
    let sessions = names(Path::new("/sys/class/iscsi_host"));
    if sessions == ["host1"] { Ok(()) } else { Err(format!("sessions: {sessions:?}")) }
}
