//! What the kernel tells of memory: whoever waits for it looks at once.

use std::io;

use actor::{Class, Ctx};
use futures::StreamExt as _;
use model::node::Pressure;
use ports::memory_alarm::{Alarms, Armed};

use crate::actor::EvictionManager;
use crate::lane::Lane;
use crate::notifications;
use crate::observe::{MemoryLook, needs};

/// An alarm of a cgroup.
type Of = (String, io::Result<Armed>);

impl EvictionManager {
    /// Listens to stalls for memory (PSI).
    pub(crate) fn listen(&mut self, ctx: &mut Ctx<Self>) {
        if !self.config.early_looks || !needs(&self.config.thresholds, Pressure::Memory) {
            return;
        }
        let deps = self.deps.clone();
        ctx.blocking(Class::HostFiles, move || deps.alarm.stalls(), |act: &mut Self, armed, ctx| {
            match armed.and_then(|armed| armed()) {
                Ok(alarms) => Self::await_stall(alarms, ctx),
                Err(error) => {
                    tracing::info!(%error, "this kernel does not tell when tasks wait for memory: it is looked at every second");
                    act.look_often(ctx);
                }
            }
        });
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
                act.look_often(ctx);
            }
        });
    }

    /// The kernel does not tell.
    fn look_often(&mut self, ctx: &mut Ctx<Self>) {
        self.longest = eviction::UNWARNED;
        if !self.memory.is_running() {
            self.look_in(Lane::Memory, eviction::UNWARNED, ctx);
        }
    }

    /// Has the kernel of v1 tell when memory crosses a threshold (node-and-resources 3.9).
    pub(crate) fn set_notifications(&mut self, look: &MemoryLook, ctx: &mut Ctx<Self>) {
        if !self.config.memcg_notification || !self.notifications.are_due(ctx.clock().now()) {
            return;
        }
        let pods = self.config.pods_cgroup.as_deref();
        let wanted: Vec<_> = self.thresholds.iter().filter_map(|t| notifications::wanted(t, look, pods)).collect();
        let deps = self.deps.clone();
        let set = move || -> Vec<Of> {
            let one = |(cgroup, bytes): (String, u64)| {
                let armed = deps.alarm.usage_crosses(&cgroup, bytes);
                (cgroup, armed)
            };
            wanted.into_iter().map(one).collect()
        };
        ctx.blocking(Class::HostFiles, set, Self::on_set);
    }

    fn on_set(&mut self, set: Vec<Of>, ctx: &mut Ctx<Self>) {
        let mut failure = None;
        for (cgroup, armed) in set {
            match armed.and_then(|armed| armed()) {
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

async fn next(alarms: &mut Alarms) -> io::Result<()> {
    alarms.next().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
}
