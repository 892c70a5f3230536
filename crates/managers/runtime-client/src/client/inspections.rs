//! Inspecting pods, and what their rows become by it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::runtime::{CallError, CallErrorKind, ObservePod, Observed};
use metrics::pleg;
use model::runtime::{ContainerState, EventTier, PodObservation};
use model::{PodUid, Timestamp};
use ports::runtime::RuntimeResult;
use tokio::sync::oneshot;

use super::RuntimeClient;
use crate::error::call_error;
use crate::inspect::{Files, Inspection, Scope, inspect};
use crate::pool::on_pool;
use crate::requests::{Expectation, PodRequests, Request};
use crate::subscription::is_no_news;
use crate::view::{Inspected, merge};

/// An inspection under way: the count and time at which it began.
struct Begun {
    seq: u64,
    at: Timestamp,
    request: Request,
}

impl RuntimeClient {
    /// Asks for an inspection of a pod, now or right after the one under way.
    pub(super) fn request(&mut self, uid: &PodUid, request: Request, ctx: &mut Ctx<Self>) {
        self.requests.entry(uid.clone()).or_default().add(request);
        self.inspect(uid, ctx);
    }

    /// Has a pod inspected after this time, or with the next request, or when somebody asks about it.
    pub(super) fn request_later(&mut self, uid: PodUid, request: Request, after: Duration, ctx: &mut Ctx<Self>) {
        self.requests.entry(uid.clone()).or_default().add(request);
        ctx.after(after, move |this, ctx| this.inspect(&uid, ctx));
    }

    /// Inspects at once everything that waits for its next try.
    pub(super) fn wake_all(&mut self, ctx: &mut Ctx<Self>) {
        let uids: Vec<PodUid> = self.requests.keys().cloned().collect();
        for uid in uids {
            self.wake(&uid, ctx);
        }
    }

    pub(super) fn wake(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Some(requests) = self.requests.get_mut(uid) {
            requests.wake();
            self.inspect(uid, ctx);
        }
    }

    /// Starts an inspection when one is asked for and none is under way.
    fn inspect(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let (mut seq, mut at) = (self.next_seq(), Self::now(ctx));
        let Some(requests) = self.requests.get_mut(uid) else { return };
        let known = self.rows.get(uid).map(|row| &*row.pod);
        let Some(request) = requests.begin(|id, expected| is_no_news(expected, id, known)) else {
            // Where all that was asked for is known by now, a relist that waits for this pod goes on.
            self.settled(uid, false, ctx);
            return self.drop_idle(uid);
        };
        if let Scope::Listed(_, list_seq, list_at) = &request.scope {
            (seq, at) = (*list_seq, *list_at);
        }
        let inspection = self.inspection(uid, &request);
        let (deps, permits, effects) = (self.deps.clone(), self.inspections.clone(), ctx.effects());
        let uid = uid.clone();
        let effect = async move {
            let _permit = permits.acquire_owned().await;
            effects.hit("before-inspection").await;
            let watch = metrics::Stopwatch::start();
            let files = Files { fs: deps.fs, effects };
            let inspected = on_pool(inspect(deps.runtime, files, inspection)).await;
            pleg::POD_RELIST_DURATION.observe(watch.seconds());
            inspected
        };
        ctx.run(effect, move |this, result, ctx| this.inspected(&uid, Begun { seq, at, request }, result, ctx));
    }

    fn inspection(&self, uid: &PodUid, request: &Request) -> Inspection {
        let known = self.rows.get(uid).map(|row| &*row.pod);
        let containers = || known.into_iter().flat_map(|pod| &pod.containers);
        let ended = containers().filter(|c| c.state == ContainerState::Exited);
        let mut inspection = Inspection {
            uid: uid.clone(),
            scope: request.scope.clone(),
            sandboxes: Vec::new(),
            containers: Vec::new(),
            carried: request.carried.clone(),
            messages: ended.map(|c| (c.id.to_string(), c.message.clone())).collect(),
        };
        if request.scope != Scope::Named && self.requests.get(uid).is_none_or(PodRequests::doubts_lists) {
            // A list may lack what is there: nothing is gone unless the runtime says so when it is asked for it by its id.
            inspection.sandboxes = known.into_iter().flat_map(|pod| &pod.sandboxes).map(|s| s.id.to_string()).collect();
            inspection.containers = containers().map(|c| (c.id.to_string(), c.sandbox.clone())).collect();
        }
        for id in request.ids.keys() {
            match self.index.sandbox(id) {
                Some(None) => inspection.sandboxes.push(id.clone()),
                Some(Some(sandbox)) => inspection.containers.push((id.clone(), sandbox.clone())),
                None => {}
            }
        }
        inspection
    }

    fn inspected(&mut self, uid: &PodUid, begun: Begun, result: RuntimeResult<Inspected>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("after-inspection");
        let Begun { seq, at, request } = begun;
        let answer = match result {
            Ok(inspected) => {
                let changed = self.merge(uid, inspected, seq, at);
                // An event that came meanwhile may have told just that, and a call of ours that is under way will.
                let told = self.requests.get(uid).is_some_and(|r| r.touched > seq || r.starting > 0);
                if changed && request.audit && !told {
                    self.diverged(uid);
                }
                self.expect(uid, &request, ctx);
                Ok(())
            }
            Err(e) => {
                tracing::warn!(pod_uid = %uid, error = %e, "cannot inspect the pod");
                if e.is_unavailable() {
                    self.lost(&e, ctx);
                }
                Err(call_error(e))
            }
        };
        if let Some(rest) = self.requests.entry(uid.clone()).or_default().end(request, &answer) {
            let uid = uid.clone();
            ctx.after(rest, move |this, ctx| this.wake(&uid, ctx));
        }
        self.settled(uid, answer.is_err(), ctx);
        self.inspect(uid, ctx);
        self.drop_idle(uid);
    }

    /// LIFE-OF-A-POD 12/12: merges what was inspected into the row, which wakes the pod's worker; returns whether that
    /// changed it.
    fn merge(&mut self, uid: &PodUid, inspected: Inspected, seq: u64, at: Timestamp) -> bool {
        for s in &inspected.sandboxes {
            self.index.learn_sandbox(s.id.as_str(), uid, seq);
        }
        for c in &inspected.containers {
            self.index.learn_container(c.id.as_str(), uid, &c.sandbox, seq);
        }
        let old = self.rows.get(uid).map(|row| row.pod.clone());
        let before = old.clone().unwrap_or_else(|| Arc::new(PodObservation::empty(uid.clone(), "", "")));
        for id in &inspected.gone {
            self.index.bury(id, self.seq);
        }
        let after = merge(&before, inspected, &self.index.at(seq));
        if after.as_ref() == old.as_deref() {
            return false;
        }
        let ids = |p: &PodObservation| {
            let sandboxes = p.sandboxes.iter().map(|s| s.id.to_string());
            sandboxes.chain(p.containers.iter().map(|c| c.id.to_string())).collect::<Vec<_>>()
        };
        let left = after.as_ref().map(ids).unwrap_or_default();
        for id in ids(&before).iter().filter(|id| !left.contains(id)) {
            self.index.bury(id, self.seq);
        }
        match after {
            Some(pod) => {
                let row = Arc::new(Observed { pod: Arc::new(pod), observed_at: at });
                self.rows.insert(uid.clone(), row.clone());
                self.pods.post(uid.clone(), row);
            }
            None => {
                self.rows.remove(uid);
                self.pods.remove(uid);
            }
        }
        true
    }

    /// A call removed a container, or a sandbox with what was in it: there is nothing left to look at.
    pub(super) fn removed(&mut self, uid: &PodUid, id: String, ctx: &Ctx<Self>) {
        let row = self.rows.get(uid).map(|row| row.pod.clone());
        let inside = row.iter().flat_map(|pod| &pod.containers).filter(|c| c.sandbox.as_str() == id);
        let mut gone: BTreeSet<String> = inside.map(|c| c.id.to_string()).collect();
        gone.insert(id);
        let (seq, at) = (self.next_seq(), Self::now(ctx));
        if row.is_some() {
            self.merge(uid, Inspected { gone, ..Inspected::default() }, seq, at);
        }
        self.drop_idle(uid);
    }

    /// Whether the row shows that nothing in a sandbox runs any more.
    pub(super) fn has_stopped(&self, uid: &PodUid, sandbox: &str) -> bool {
        let pod = self.rows.get(uid).map(|row| &*row.pod);
        let inside = |pod: &PodObservation| {
            pod.containers.iter().all(|c| c.sandbox.as_str() != sandbox || c.state == ContainerState::Exited)
        };
        is_no_news(Expectation::Stopped, sandbox, pod) && pod.is_some_and(inside)
    }

    fn drop_idle(&mut self, uid: &PodUid) {
        if self.requests.get(uid).is_some_and(PodRequests::is_idle) && !self.rows.contains_key(uid) {
            self.requests.remove(uid);
        }
    }

    fn diverged(&mut self, uid: &PodUid) {
        if self.info.tier == EventTier::Relist || !self.relisting.done {
            return;
        }
        self.info.divergences += 1;
        self.relisting.disagreed = true;
        tracing::info!(pod_uid = %uid, divergences = self.info.divergences, "a relist found what no event had told");
    }

    /// Inspects again, soon, where an event had said more than there was to see.
    fn expect(&mut self, uid: &PodUid, request: &Request, ctx: &mut Ctx<Self>) {
        let pod = self.rows.get(uid).map(|row| row.pod.clone());
        for (wait, again) in request.unmet(pod.as_deref()) {
            let uid = uid.clone();
            ctx.after(wait, move |this, ctx| {
                // An inspection for another reason may have shown it meanwhile.
                let known = this.rows.get(&uid).map(|row| row.pod.clone());
                if again.is_unmet(known.as_deref()) {
                    this.request(&uid, again, ctx);
                }
            });
        }
    }

    fn row(&self, m: &ObservePod) -> Arc<PodObservation> {
        let nothing = || Arc::new(PodObservation::empty(m.uid.clone(), &m.namespace, &m.name));
        self.rows.get(&m.uid).map_or_else(nothing, |row| row.pod.clone())
    }
}

impl Handler<ObservePod> for RuntimeClient {
    type Result = Deferred<Self, Result<Arc<PodObservation>, CallError>>;

    fn handle(&mut self, m: ObservePod, ctx: &mut Ctx<Self>) -> Self::Result {
        // Until this generation has listed, what the last one did not finish is unknown.
        let unsure = m.force || self.info.stale || !self.relisting.done;
        let settled = self.requests.get(&m.uid).is_none_or(PodRequests::is_settled);
        if !unsure && settled {
            return Deferred::ready(Ok(self.row(&m)));
        }
        let (tx, rx) = oneshot::channel();
        let requests = self.requests.entry(m.uid.clone()).or_default();
        if unsure {
            requests.wait_for_next(tx);
            self.request(&m.uid, Request::all(), ctx);
        } else {
            requests.wait_for_current(tx);
        }
        // Somebody waits for the answer, good or bad.
        self.wake(&m.uid, ctx);
        Deferred::then(rx, move |this: &mut Self, answer, _| match answer {
            Ok(Ok(())) => Ok(this.row(&m)),
            Ok(Err(e)) => Err(e),
            Err(_) => {
                let message = "the inspection of the pod was given up".to_owned();
                Err(CallError::new(CallErrorKind::Lost, message))
            }
        })
    }
}
