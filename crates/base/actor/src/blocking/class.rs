//! What blocking work waits for.

use serde::Serialize;

/// What a piece of blocking work waits for. Classes share no thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The journal.
    Journal,
    /// Files that the node or the kernel owns: root folder, logs, cgroups, mounts, `/proc`.
    HostFiles,
    /// Paths that users of pods chose: hostPath volumes and what is bound out of them. A network file system may hang them,
    /// which is no fault of the node.
    UserPaths,
    /// Trees that pods filled and that go now, which takes as long as there are files. Whoever has few of them does not wait for long
    /// behind those with many.
    Removals,
    /// The folder of manifests, wherever the node's owner has it.
    Manifests,
    /// Files read for clients of the node's ports: container logs, `/logs/`. However many read, and whatever disk hangs
    /// under them, the node's own work has threads left.
    ServedFiles,
    /// Name look-ups.
    NameLookups,
    /// No waiting at all, only more computing than a turn may hold.
    Computing,
}

impl Class {
    /// All of them, in the order of their declaration.
    pub const ALL: [Class; 8] = [
        Class::Journal,
        Class::HostFiles,
        Class::UserPaths,
        Class::Removals,
        Class::Manifests,
        Class::ServedFiles,
        Class::NameLookups,
        Class::Computing,
    ];

    /// As in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Class::Journal => "journal",
            Class::HostFiles => "host-files",
            Class::UserPaths => "user-paths",
            Class::Removals => "removals",
            Class::Manifests => "manifests",
            Class::ServedFiles => "served-files",
            Class::NameLookups => "name-lookups",
            Class::Computing => "computing",
        }
    }

    /// Calls that may run at the same moment; further ones wait for their turn, first come first served.
    pub(super) fn threads(self) -> usize {
        match self {
            // The journal writes what waits in one go: many waiters are cheap there.
            Class::Journal | Class::HostFiles | Class::ServedFiles => 16,
            Class::UserPaths | Class::Removals => 8,
            Class::Manifests | Class::NameLookups | Class::Computing => 2,
        }
    }

    /// Calls that hang beyond those: each gives its place to the next one after a while, and keeps its thread.
    pub(super) fn hanging(self) -> usize {
        match self {
            // Each pod has one call out at a time: with these, more pods than a node of the usual size (110) has may hang.
            Class::UserPaths | Class::Removals => 120,
            _ => 0,
        }
    }

    /// Whether the node cannot go on without it.
    pub(super) fn is_vital(self) -> bool {
        matches!(self, Class::Journal | Class::HostFiles)
    }
}
