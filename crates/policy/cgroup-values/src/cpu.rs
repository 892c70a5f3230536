//! CPU time: millicores to shares and quota (node-and-resources 1.4).

use model::cgroup::{MAX_SHARES, MIN_SHARES};

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
