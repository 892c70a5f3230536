//! What the kernel tells of memory: whoever waits for it looks at once.

use std::io;

use actor::Ctx;
use eviction::Threshold;
use futures::StreamExt as _;
use ports::memory_alarm::Alarms;

use crate::actor::EvictionManager;
use crate::notifications;
use crate::observe::Look;

impl EvictionManager {
    /// Listens to stalls for memory (PSI).
    pub(crate) fn listen(&mut self, ctx: &mut Ctx<Self>) {
        if !self.config.early_looks || !self.config.thresholds.iter().any(is_of_memory) {
            return;
        }
        match self.deps.alarm.stalls() {
            Ok(alarms) => Self::await_stall(alarms, ctx),
            Err(error) => {
                tracing::info!(%error, "this kernel does not tell when tasks wait for memory: it is looked at every second");
                self.longest = eviction::UNWARNED;
            }
        }
    }

    fn await_stall(mut alarms: Alarms, ctx: &mut Ctx<Self>) {
        let next = async move { (next(&mut alarms).await, alarms) };
        ctx.run(next, |act: &mut Self, (told, alarms), ctx| match told {
            Ok(()) => {
                act.look_soon(ctx);
                Self::await_stall(alarms, ctx);
            }
            Err(error) => {
                tracing::warn!(%error, "the kernel tells no more when tasks wait for memory: it is looked at every second");
                act.longest = eviction::UNWARNED;
            }
        });
    }

    /// Has the kernel of v1 tell when memory crosses a threshold (node-and-resources 3.9).
    pub(crate) fn set_notifications(&mut self, look: &Look, ctx: &mut Ctx<Self>) {
        if !self.config.memcg_notification || !self.notifications.are_due(ctx.clock().now()) {
            return;
        }
        let pods = self.config.pods_cgroup.as_deref();
        let wanted: Vec<_> = self.thresholds.iter().filter_map(|t| notifications::wanted(t, look, pods)).collect();
        let mut failure = None;
        for (cgroup, bytes) in wanted {
            match self.deps.alarm.usage_crosses(&cgroup, bytes) {
                Ok(mut alarms) => {
                    let told = self.notifications.set(async move { next(&mut alarms).await });
                    ctx.run(told, |act: &mut Self, told, ctx| {
                        if let Ok(Ok(())) = told {
                            act.look_soon(ctx);
                        }
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    tracing::warn!(%error, cgroup, "kernelMemcgNotification has no effect here");
                    return self.notifications.refuse();
                }
                Err(error) => failure = Some((cgroup, error)),
            }
        }
        if self.notifications.note(failure.is_some())
            && let Some((cgroup, error)) = failure
        {
            tracing::warn!(%error, cgroup, "the kernel is not told when to tell of memory: tried again with later looks");
        }
    }
}

fn is_of_memory(threshold: &Threshold) -> bool {
    threshold.signal.resource() == eviction::Resource::Memory
}

async fn next(alarms: &mut Alarms) -> io::Result<()> {
    alarms.next().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
}
