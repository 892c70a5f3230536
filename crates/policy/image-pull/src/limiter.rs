//! How fast pulls may start (`registryPullQPS`, `registryBurst`).

/// A token bucket; time comes in as nanoseconds of any steady clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter {
    /// Tokens per second; `None`: no limit.
    per_second: Option<f64>,
    burst: f64,
    tokens: f64,
    last_ns: i64,
}

impl Limiter {
    /// `qps` not positive: no limit. The bucket starts full.
    #[must_use]
    pub fn new(qps: i32, burst: i32) -> Self {
        let burst = f64::from(burst.max(1));
        Self { per_second: (qps > 0).then_some(f64::from(qps)), burst, tokens: burst, last_ns: 0 }
    }

    /// Takes a token if there is one. Never waits: over the limit is an error, and counts as a failed pull.
    pub fn try_accept(&mut self, now_ns: i64) -> bool {
        let Some(rate) = self.per_second else { return true };
        let passed = now_ns.saturating_sub(self.last_ns).max(0) as f64 / 1e9;
        self.last_ns = self.last_ns.max(now_ns);
        self.tokens = (self.tokens + passed * rate).min(self.burst);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}
