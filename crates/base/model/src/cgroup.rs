//! Names and numbers of the kernel's cgroup files that several crates must agree on (node-and-resources 1.4).

/// Fewest CPU shares that the kernel takes.
pub const MIN_SHARES: u64 = 2;
/// Most CPU shares that the kernel takes.
pub const MAX_SHARES: u64 = 262_144;

/// A process of a cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// A thread of the kernel's own.
    pub is_kernel: bool,
}

/// `cpu.weight` (1 to 10000) that the node writes for `shares`. Linear: the whole tree must use one scale, and runtimes
/// convert only their own leaves.
#[must_use]
pub fn cpu_weight(shares: u64) -> u64 {
    let shares = shares.clamp(MIN_SHARES, MAX_SHARES);
    1 + (shares - MIN_SHARES) * 9999 / (MAX_SHARES - MIN_SHARES)
}

/// Shares that a `cpu.weight` stands for (lossy).
#[must_use]
pub fn shares_of_weight(weight: u64) -> u64 {
    (weight.clamp(1, 10_000) - 1) * (MAX_SHARES - MIN_SHARES) / 9999 + MIN_SHARES
}

/// `2MB`, `1GB`: how the kernel's files and the runtimes name a page size.
#[must_use]
pub fn page_size_name(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KB", "MB", "GB", "TB", "PB"];
    let (mut n, mut unit) = (bytes, 0);
    while n >= 1024 && n.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        n /= 1024;
        unit += 1;
    }
    format!("{n}{}", UNITS[unit])
}
