//! Giving a volume to its pod's group may take long: users are told meanwhile (node-and-resources 6.5).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actor::Clock;
use tokio::sync::Notify;

/// After so long users hear of it.
const FIRST: Duration = Duration::from_secs(30);
/// And again each time after this.
const PERIOD: Duration = Duration::from_secs(60);

/// How far a walk through a volume is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    begun: Notify,
    files: AtomicU64,
}

impl Progress {
    /// The walk begins.
    pub(crate) fn begin(&self) {
        self.0.begun.notify_one();
    }

    /// One file or directory more was given.
    pub(crate) fn count(&self) {
        self.0.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Carries out `work`, which gives what is at `dir` (as users are told), and tells of it while it takes long.
    pub(crate) async fn told<T>(
        &self,
        clock: &Clock,
        dir: &str,
        tell: impl Fn(String),
        work: impl Future<Output = T>,
    ) -> T {
        tokio::select! {
            biased;
            out = work => out,
            never = self.tell(clock, dir, tell) => match never {},
        }
    }

    async fn tell(&self, clock: &Clock, dir: &str, tell: impl Fn(String)) -> Infallible {
        self.0.begun.notified().await;
        clock.sleep(FIRST).await;
        tell(format!(
            "Setting volume ownership for {dir} is taking longer than expected, consider using OnRootMismatch - \
             https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods"
        ));
        loop {
            clock.sleep(PERIOD).await;
            tell(format!(
                "Setting volume ownership for {dir}, processed {} files.",
                self.0.files.load(Ordering::Relaxed)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_walk_that_takes_long_is_told_of_after_half_a_minute_and_each_minute() {
        for (begins, takes, wanted) in [
            (true, 29, vec![]),
            (true, 31, vec!["is taking longer than expected"]),
            (true, 155, vec!["is taking longer than expected", "processed 90 files.", "processed 150 files."]),
            (false, 600, vec![]),
        ] {
            actor::testing::run(1, async |kernel| {
                let (progress, told) = (Progress::default(), RefCell::new(Vec::new()));
                let clock = kernel.clock();
                let work = async {
                    if begins {
                        progress.begin();
                    }
                    for _ in 0..takes {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        progress.count();
                    }
                    takes
                };
                let done = progress.told(clock, "u1/volumes/v", |text| told.borrow_mut().push(text), work).await;
                assert_eq!(done, takes);
                let told = told.into_inner();
                assert_eq!(told.len(), wanted.len(), "{takes}: {told:?}");
                for (text, wanted) in told.iter().zip(wanted) {
                    assert!(
                        text.starts_with("Setting volume ownership for u1/volumes/v") && text.contains(wanted),
                        "{text}"
                    );
                }
            });
        }
    }
}
