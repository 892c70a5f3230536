//! CPU time: millicores to shares, weight and quota (node-and-resources 1.4).

/// Fewest CPU shares that the kernel takes.
pub const MIN_SHARES: u64 = 2;
/// Most CPU shares that the kernel takes.
pub const MAX_SHARES: u64 = 262_144;
/// Smallest CFS quota that the kernel takes, in microseconds.
pub const MIN_QUOTA_US: i64 = 1000;
/// CFS period unless configured otherwise, in microseconds.
pub const DEFAULT_PERIOD_US: u64 = 100_000;

/// CPU shares of a request in millicores.
#[must_use]
pub fn shares(milli_cpu: i64) -> u64 {
    let wanted = i128::from(milli_cpu) * 1024 / 1000;
    u64::try_from(wanted).unwrap_or(0).clamp(MIN_SHARES, MAX_SHARES)
}

/// CFS quota in microseconds for a limit in millicores; 0 means "leave unset".
#[must_use]
pub fn quota_us(milli_cpu: i64, period_us: u64) -> i64 {
    if milli_cpu == 0 {
        return 0;
    }
    let quota = i128::from(milli_cpu) * i128::from(period_us) / 1000;
    i64::try_from(quota).unwrap_or(i64::MAX).max(MIN_QUOTA_US)
}

/// `cpu.weight` (1 to 10000) that the node writes for `shares`. Linear: the whole tree must use one scale, and runtimes
/// convert only their own leaves.
#[must_use]
pub fn weight(shares: u64) -> u64 {
    let shares = shares.clamp(MIN_SHARES, MAX_SHARES);
    1 + (shares - MIN_SHARES) * 9999 / (MAX_SHARES - MIN_SHARES)
}

/// Shares that a `cpu.weight` stands for (lossy).
#[must_use]
pub fn shares_of_weight(weight: u64) -> u64 {
    (weight.clamp(1, 10_000) - 1) * (MAX_SHARES - MIN_SHARES) / 9999 + MIN_SHARES
}
