//! What the text is made of: one row per cgroup.

use std::sync::Arc;

use model::Timestamp;
use model::reading::{CgroupReading, InterfaceReading, MachineReading, MountedDisk};

use crate::text::labels;

/// What a gathering has read.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The machine.
    pub machine: Arc<MachineReading>,
    /// When it was read.
    pub at: Timestamp,
    /// Disks of the machine: they show in the row of the root.
    pub disks: Vec<MountedDisk>,
    /// Cgroups.
    pub rows: Vec<Row>,
    /// Something that every node has could not be read.
    pub failed: bool,
}

/// One cgroup. Unknown names are empty.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Path of the cgroup.
    pub id: String,
    /// Name in the pod; empty for sandboxes.
    pub container: String,
    /// Image reference.
    pub image: String,
    /// Id of the container or sandbox.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// When it was started; not set: the cgroup's own time counts.
    pub started: Timestamp,
    /// What it uses.
    pub reading: CgroupReading,
    /// Interfaces; of sandboxes and the root only.
    pub network: Vec<InterfaceReading>,
}

/// A row with its labels written.
pub(super) struct Labelled<'a> {
    pub(super) row: &'a Row,
    pub(super) container: String,
    pub(super) rest: String,
    /// Disks of the machine, for the root.
    pub(super) disks: &'a [MountedDisk],
}

impl<'a> Labelled<'a> {
    pub(super) fn new(row: &'a Row, disks: &'a [MountedDisk]) -> Self {
        let rest = [
            ("id", row.id.as_str()),
            ("image", &row.image),
            ("name", &row.name),
            ("namespace", &row.namespace),
            ("pod", &row.pod),
        ];
        Self {
            row,
            container: labels(&[("container", &row.container)]),
            rest: labels(&rest),
            disks: if row.id == "/" { disks } else { &[] },
        }
    }
}
