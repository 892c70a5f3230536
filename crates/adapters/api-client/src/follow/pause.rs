//! Pauses between tries: 800 ms, doubled up to 30 s, each with jitter of up to the same again (interfaces 9.2).

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::WatchTimes;

#[derive(Debug)]
pub(super) struct Pauses {
    first: Duration,
    most: Duration,
    calm_after: Duration,
    next: Duration,
    last: Option<Instant>,
}

impl Pauses {
    pub(super) fn new(times: &WatchTimes) -> Self {
        let (first, most, calm_after) = (times.pause_first, times.pause_most, times.calm_after);
        Self { first, most, calm_after, next: first, last: None }
    }

    /// Nothing failed for a while.
    pub(super) fn is_calm(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= self.calm_after)
    }

    /// Something failed, but it is tried again at once.
    pub(super) fn note(&mut self) -> Option<Duration> {
        self.next = self.first;
        self.last = Some(Instant::now());
        None
    }

    /// How long to wait now.
    pub(super) fn next(&mut self) -> Duration {
        if self.is_calm() {
            self.next = self.first;
        }
        let base = self.next;
        self.next = (base * 2).min(self.most);
        let pause = base.mul_f64(1.0 + fastrand::f64());
        // Calm is counted from the end of the pause.
        self.last = Some(Instant::now() + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pauses;
    use crate::settings::WatchTimes;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_their_most_and_begin_anew_after_calm() {
        let mut pauses = Pauses::new(&WatchTimes::default());
        assert!(pauses.is_calm());
        for base in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000].map(Duration::from_millis) {
            let pause = pauses.next();
            assert!(pause >= base && pause < base * 2, "{pause:?} for {base:?}");
        }
        tokio::time::advance(Duration::from_secs(181)).await;
        assert!(pauses.is_calm());
        assert!(pauses.next() < Duration::from_millis(1600));
    }
}
