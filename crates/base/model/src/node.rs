//! Words about a node: what runs short on it, what machine it is, how its cgroups are made.

/// A resource that runs short, in the order in which the node reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pressure {
    /// Memory.
    Memory,
    /// Disk space or inodes.
    Disk,
    /// Process ids.
    Pid,
}

impl Pressure {
    /// All of them, in order.
    pub const ALL: [Pressure; 3] = [Pressure::Memory, Pressure::Disk, Pressure::Pid];

    /// Condition type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Pressure::Memory => "MemoryPressure",
            Pressure::Disk => "DiskPressure",
            Pressure::Pid => "PIDPressure",
        }
    }

    /// From a condition type.
    #[must_use]
    pub fn parse(s: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == s)
    }
}

/// An architecture in the words of Go, as labels, the Node and user agents have it, from Rust's word for it.
#[must_use]
pub const fn go_architecture(rust: &str) -> &str {
    match rust.as_bytes() {
        b"x86_64" => "amd64",
        b"aarch64" => "arm64",
        _ => rust,
    }
}

/// Who makes cgroups, and so how they are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CgroupDriver {
    /// Directories made by the node itself.
    #[default]
    Cgroupfs,
    /// systemd units of type slice.
    Systemd,
}

/// What pods may do with swap (`memorySwap.swapBehavior`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SwapBehavior {
    /// Nothing.
    #[default]
    NoSwap,
    /// Burstable pods swap in proportion to their memory request (cgroup v2).
    LimitedSwap,
}
