//! Relists: the truth at start, an audit of events afterwards, the only source without events.

use std::collections::BTreeSet;
use std::time::Duration;

use actor::AsyncContext as _;
use actor::{Ctx, Deferred, Handler};
use contract::runtime::{CallError, CallErrorKind, Relist};
use cri_api::v1;
use futures::future::try_join;
use metrics::pleg;
use model::PodUid;
use model::runtime::PodObservation;
use ports::runtime::RuntimeResult;
use tokio::sync::oneshot;

use super::RuntimeClient;
use crate::error::call_error;
use crate::pool::on_pool;
use crate::relisting::Run;
use crate::requests::Request;
use crate::view::list::{Listed, Lists};

impl RuntimeClient {
    /// Relists now, or right after the relist under way, because something is known to be unknown.
    pub(super) fn relist(&mut self, ctx: &mut Ctx<Self>) {
        if self.relisting.running.is_some() {
            self.relisting.again = true;
        } else {
            self.start_relist(false, ctx);
        }
    }

    fn start_relist(&mut self, audit: bool, ctx: &mut Ctx<Self>) {
        ctx.fault_point("before-relist");
        if let Some(timer) = self.relisting.timer.take() {
            ctx.cancel_future(timer);
        }
        let (seq, at, now) = (self.next_seq(), Self::now(ctx), ctx.clock().now());
        pleg::LAST_SEEN.set(Duration::from_nanos(u64::try_from(at.0).unwrap_or(0)).as_secs_f64());
        if let Some(before) = self.relisting.began.replace(now) {
            pleg::RELIST_INTERVAL.observe(now.duration_since(before).as_secs_f64());
        }
        self.relisting.again = false;
        self.relisting.disagreed = false;
        let serving = std::mem::take(&mut self.relisting.waiting);
        self.relisting.running = Some(Run { seq, at, audit, open: BTreeSet::new(), failed: None, serving });
        let runtime = self.deps.runtime.clone();
        let lists = on_pool(async move {
            let sandboxes = runtime.list_pod_sandbox(v1::ListPodSandboxRequest { filter: None });
            let containers = runtime.list_containers(v1::ListContainersRequest { filter: None });
            let (sandboxes, containers) = try_join(sandboxes, containers).await?;
            Ok(Lists::new(sandboxes.items, containers.containers))
        });
        ctx.run(lists, Self::listed);
    }

    fn listed(&mut self, lists: RuntimeResult<Lists>, ctx: &mut Ctx<Self>) {
        let Some(run) = &mut self.relisting.running else { return };
        let (seq, at, audit) = (run.seq, run.at, run.audit);
        let lists = match lists {
            Ok(lists) => lists,
            Err(e) => {
                tracing::warn!(error = %e, "cannot list pods");
                run.failed = Some(call_error(e.clone()));
                if e.is_unavailable() {
                    self.lost(&e, ctx);
                }
                return self.finish_relist(ctx);
            }
        };
        for (uid, pod) in &lists.0 {
            for id in pod.sandboxes.keys() {
                self.index.learn_sandbox(id, uid, seq);
                self.index.shown(id, seq);
            }
            for (id, (_, sandbox)) in &pod.containers {
                self.index.learn_container(id, uid, sandbox, seq);
                self.index.shown(id, seq);
            }
        }
        let changed = lists.changed(self.rows.values().map(|row| &*row.pod));
        self.relisting.open(changed.iter().cloned());
        for uid in changed {
            let requests = self.requests.get(&uid);
            let (due, newer) = requests.map_or((false, false), |r| (!r.is_settled(), r.touched > seq));
            if (due || newer) && !self.relisting.done {
                // What the last generation did not finish is unknown, and what is inspected now may be a part only.
                self.request(&uid, Request::all(), ctx);
                self.wake(&uid, ctx);
            } else if due {
                // An inspection is due anyway, and it is newer than the lists.
                self.wake(&uid, ctx);
            } else if newer {
                self.relisting.close(&uid);
            } else {
                let listed: Listed = lists.0.get(&uid).cloned().unwrap_or_default();
                self.request(&uid, Request::listed(listed, seq, at, audit), ctx);
            }
        }
        if self.relisting.is_over() {
            self.finish_relist(ctx);
        }
    }

    /// An inspection has ended.
    pub(super) fn settled(&mut self, uid: &PodUid, failed: bool, ctx: &mut Ctx<Self>) {
        if failed {
            self.relisting.fail(uid);
        } else if self.requests.get(uid).is_some_and(|r| !r.is_settled()) {
            return;
        }
        if self.relisting.close(uid) {
            self.finish_relist(ctx);
        }
    }

    fn finish_relist(&mut self, ctx: &mut Ctx<Self>) {
        let Some(run) = self.relisting.running.take() else { return };
        if let Some(began) = self.relisting.began {
            pleg::RELIST_DURATION.observe(ctx.clock().now().duration_since(began).as_secs_f64());
        }
        let answer = run.failed.map_or(Ok(()), Err);
        for reply in run.serving {
            let _ = reply.send(answer.clone());
        }
        self.info.stale = answer.is_err();
        if answer.is_ok() {
            self.relisting.done = true;
            self.info.listed = true;
            self.info.last_relist = run.at;
            let pods = self.rows.values().map(|row| &*row.pod);
            self.index.prune(run.seq, &pods.flat_map(ids).collect());
        }
        self.publish();
        if self.relisting.again {
            return self.relist(ctx);
        }
        let wait = self.relisting.next_period(&self.deps.config, &self.info);
        self.relisting.timer = Some(ctx.after(wait, |this, ctx| {
            this.relisting.timer = None;
            if this.link.is_up() && this.relisting.running.is_none() {
                this.start_relist(true, ctx);
            }
        }));
    }
}

/// All ids in an observation.
fn ids(pod: &PodObservation) -> impl Iterator<Item = &str> {
    let sandboxes = pod.sandboxes.iter().map(|s| s.id.as_str());
    sandboxes.chain(pod.containers.iter().map(|c| c.id.as_str()))
}

impl Handler<Relist> for RuntimeClient {
    type Result = Deferred<Self, Result<(), CallError>>;

    fn handle(&mut self, _: Relist, ctx: &mut Ctx<Self>) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.relisting.waiting.push(tx);
        self.relist(ctx);
        let lost = || CallError::new(CallErrorKind::Lost, "the relist was given up");
        Deferred::new(async move { rx.await.unwrap_or_else(|_| Err(lost())) })
    }
}
