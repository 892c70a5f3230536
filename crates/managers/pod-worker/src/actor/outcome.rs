//! What follows from how a step ended.

use std::time::Duration;

use actor::Ctx;
use contract::status::StatusEntry;
use model::Timestamp;
use model::history::What;
use pod_history::New;

use super::PodWorker;
use crate::job::{Failure, Retry};
use crate::sync::Synced;

/// Retry of a step that failed for no special reason; jittered up to 1.5 times.
const ERROR_BACKOFF: Duration = Duration::from_secs(10);
/// Retry while the network is not ready; jittered up to 1.5 times.
const NETWORK_BACKOFF: Duration = Duration::from_secs(1);

impl PodWorker {
    pub(super) fn synced(&mut self, outcome: Synced, ctx: &mut Ctx<Self>) {
        match outcome {
            Synced::Terminal => {
                self.machine.ran_to_end();
                self.next_step("the pod has run to its end", ctx);
            }
            Synced::Acted | Synced::Settled => {
                if outcome == Synced::Acted {
                    self.steps.again = true;
                }
                let resync = jittered(self.deps.config.sync_frequency, ctx);
                let wait = self.deadline_left(ctx).map_or(resync, |left| resync.min(left));
                self.next_step_after(wait, "time to look again", ctx);
            }
        }
    }

    /// Time until the pod is past its active deadline, when it has one.
    fn deadline_left(&self, ctx: &Ctx<Self>) -> Option<Duration> {
        let pod = self.machine.pod.as_ref()?;
        let status = self.crew.board::<StatusEntry>().get(&self.uid)?;
        let now = Timestamp(ctx.clock().unix_nanos());
        pod_status::active_deadline_left(pod, &status.status, now).filter(|left| !left.is_zero())
    }

    pub(super) fn terminated(&mut self, (): (), ctx: &mut Ctx<Self>) {
        self.machine.stopped();
        self.next_step("containers are stopped", ctx);
    }

    pub(super) fn cleaned(&mut self, (): (), ctx: &mut Ctx<Self>) {
        self.machine.cleaned();
        self.chronicle.note(New::of_pod(What::Finished), Timestamp(ctx.clock().unix_nanos()));
        self.steps.again = false;
    }

    pub(super) fn failed(&mut self, failure: Failure, ctx: &mut Ctx<Self>) {
        let wait = match failure.retry {
            Retry::Now => {
                self.steps.again = true;
                return;
            }
            Retry::Network => jittered(NETWORK_BACKOFF, ctx),
            Retry::Later => jittered(ERROR_BACKOFF, ctx),
            Retry::At(until) => {
                let left = until.nanos_since(Timestamp(ctx.clock().unix_nanos())).max(0);
                let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
                left.min(self.deps.config.sync_frequency.max(ERROR_BACKOFF)) + Duration::from_millis(1)
            }
        };
        let retry_s = wait.as_secs_f32();
        self.chronicle.step_failed(&failure.message, Timestamp(ctx.clock().unix_nanos()));
        if self.machine.started_terminating {
            let pod = self.machine.pod.as_deref().map(model::pod::describe);
            tracing::warn!(uid = %self.uid, pod, retry_s, error = failure.message, "the pod could not be ended");
        } else {
            tracing::info!(uid = %self.uid, retry_s, error = failure.message, "step did not succeed");
        }
        self.shown.error = Some(failure.message);
        self.next_step_after(wait, "time to try again", ctx);
    }
}

fn jittered(base: Duration, ctx: &mut Ctx<PodWorker>) -> Duration {
    base + base.mul_f64(ctx.rng().f64() * 0.5)
}
