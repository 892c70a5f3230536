//! A token bucket: so many requests per second, and so many at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Numbers of one rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second in the long run; not above zero: no limit.
    pub per_second: f64,
    /// Requests at once after a quiet time.
    pub burst: u32,
}

/// Who comes first goes first; each request has its turn at a known time.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, state: Mutex::new((f64::from(rate.burst.max(1)), Instant::now())) }
    }

    /// Takes a token, if it comes within `patience`; answers how long to wait for it.
    pub(crate) fn acquire(&self, patience: Duration) -> Option<Duration> {
        if self.rate.per_second <= 0.0 {
            return Some(Duration::ZERO);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(state.1).as_secs_f64() * self.rate.per_second;
        let tokens = (state.0 + gained).min(f64::from(self.rate.burst.max(1)));
        let wait = Duration::from_secs_f64(((1.0 - tokens) / self.rate.per_second).max(0.0));
        if wait > patience {
            return None;
        }
        *state = (tokens - 1.0, now);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Bucket, Rate};

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let bucket = Bucket::new(Rate { per_second: 10.0, burst: 3 });
        let waits: Vec<_> = (0..5).map(|_| bucket.acquire(Duration::from_secs(9)).unwrap().as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(bucket.acquire(Duration::ZERO), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_wait_takes_no_token() {
        let bucket = Bucket::new(Rate { per_second: 1.0, burst: 1 });
        assert_eq!(bucket.acquire(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(bucket.acquire(Duration::from_millis(500)), None);
        assert_eq!(bucket.acquire(Duration::from_secs(1)), Some(Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_is_no_limit() {
        let bucket = Bucket::new(Rate { per_second: 0.0, burst: 0 });
        assert!((0..1000).all(|_| bucket.acquire(Duration::ZERO) == Some(Duration::ZERO)));
    }
}
