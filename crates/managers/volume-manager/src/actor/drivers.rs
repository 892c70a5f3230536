//! What the actor has to do with volumes of drivers: they go when no pod has them any more.

use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::volume::{ExpectVolumes, VolumeError};
use model::{PodUid, pod};

use super::{VolumeManager, piece, task_context};
use crate::deps::Tools;
use crate::layout::PodLayout;
use crate::persistent::{self, Expected, Idle, Outgrown};
use crate::tear_down::{Left, OfDriver};
use crate::{board, class};

/// What was asked for a pod that starts soon is good for so long.
const EXPECTED: Duration = Duration::from_secs(2);

impl VolumeManager {
    /// Looks which volumes of drivers are there, and unstages those that nobody has.
    pub(super) fn sweep(&mut self, ctx: &mut Ctx<Self>) {
        if self.sweeping.is_some() {
            self.sweeping = Some(true);
            return;
        }
        self.sweeping = Some(false);
        let (tools, task) = (self.tools.clone(), task_context(ctx));
        let look = async move { persistent::sweep(&tools, &task).await };
        ctx.run(look, |act: &mut Self, found, ctx| {
            let again = act.sweeping.take() == Some(true);
            found.idle.into_iter().for_each(|idle| act.unstage(idle, ctx));
            if let Some(wait) = found.wait {
                ctx.after(wait, Self::sweep);
            }
            if again {
                act.sweep(ctx);
            }
        });
    }

    fn unstage(&mut self, idle: Idle, ctx: &mut Ctx<Self>) {
        if !self.unstaging.insert(idle.name.clone()) {
            return;
        }
        let (tools, task, name) = (self.tools.clone(), task_context(ctx), idle.name.clone());
        let work = async move { persistent::undo(&tools, &task, &idle).await };
        ctx.run(work, move |act: &mut Self, (), ctx| {
            act.unstaging.remove(&name);
            act.sweep(ctx);
        });
    }

    /// Looks which volumes in use became larger at the API server, and lets them grow.
    pub(super) fn look_for_growth(&mut self, ctx: &mut Ctx<Self>) {
        let tools = self.tools.clone();
        let look = async move { persistent::outgrown(&tools).await };
        ctx.run(look, |act: &mut Self, found, ctx| found.into_iter().for_each(|of| act.grow(of, ctx)));
    }

    fn grow(&mut self, of: Outgrown, ctx: &mut Ctx<Self>) {
        if !self.growing.insert(of.name.clone()) {
            return;
        }
        let (tools, task, on) = (self.tools.clone(), task_context(ctx), of.clone());
        let work = async move { persistent::grow(&tools, &task, &on).await };
        ctx.run(work, move |act: &mut Self, again, ctx| match again {
            None => drop(act.growing.remove(&of.name)),
            Some(wait) => drop(ctx.after(wait, move |act, ctx| {
                act.growing.remove(&of.name);
                act.grow(of, ctx);
            })),
        });
    }

    /// Takes away what a pod has. `step` answers with the volumes that drivers must be asked to take; it is done again after that.
    pub(super) fn release(
        &mut self,
        uid: PodUid,
        points: [&'static str; 2],
        step: fn(&Tools, &PodLayout) -> Result<Left, VolumeError>,
        ctx: &mut Ctx<Self>,
    ) -> Deferred<Self, Result<(), VolumeError>> {
        let had_some = self.cancel(&uid, ctx);
        let (tools, task, of) = (self.tools.clone(), task_context(ctx), uid.clone());
        let work = async move {
            let class = |tools: &Tools, layout: &PodLayout| class::of_tear_down(&tools.deps, layout);
            let Left { of_drivers: volumes, failed } =
                match piece(&tools, &uid, (points, board::post), &task.effects, class, step).await {
                    Ok(left) => left,
                    Err(e) => return (Err(e), had_some),
                };
            if volumes.is_empty() {
                return (Ok(()), had_some);
            }
            let layout = match PodLayout::new(&tools.config.root_dir, &uid) {
                Ok(layout) => layout,
                Err(e) => return (Err(e), false),
            };
            let taken = persistent::unmount(&tools, &uid, &layout, &volumes, &task).await;
            let done = piece(&tools, &uid, (points, board::post), &task.effects, class, move |tools, layout| {
                let names = volumes.iter().map(OfDriver::name).collect::<Vec<_>>().join(" ");
                let named = |e: String| VolumeError::new(format!("mounted volumes=[{names}]: {e}"));
                match (taken, failed) {
                    (Err(e), Some(other)) => return Err(named(format!("{e}; {other}"))),
                    (Err(e), None) => return Err(named(e)),
                    // The next try begins with what failed.
                    (Ok(()), Some(e)) => return Err(VolumeError::new(e)),
                    (Ok(()), None) => {}
                }
                let left = step(tools, layout)?;
                if left.of_drivers.is_empty() { Ok(()) } else { Err(named("they came back".to_owned())) }
            });
            (done.await, true)
        };
        Deferred::then(work, move |this: &mut Self, (done, swept), ctx| {
            if done.is_ok() {
                this.tools.deps.persistent.taken_from(&of);
            }
            if swept {
                this.sweep(ctx);
            }
            done
        })
    }
}

impl Handler<ExpectVolumes> for VolumeManager {
    type Result = ();

    fn handle(&mut self, ExpectVolumes { pod }: ExpectVolumes, ctx: &mut Ctx<Self>) {
        let uid = pod::uid(&pod);
        if self.tools.deps.desired.get(&uid).is_some() {
            return;
        }
        let expected = Expected::of(&self.tools, &pod);
        self.expected.insert(uid.clone(), expected.clone());
        ctx.run(expected.clone().all(), |_: &mut Self, (), _| ());
        // Who asks later than this asks the API server anew.
        ctx.after(EXPECTED, move |act, _| {
            if act.expected.get(&uid).is_some_and(|there| there.is(&expected)) {
                act.expected.remove(&uid);
            }
        });
    }
}
