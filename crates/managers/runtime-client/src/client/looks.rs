//! Looking at pods: one look per pod at a time, what is wanted meanwhile is joined into the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::runtime::{CallError, CallErrorKind, ObservePod, Observed};
use metrics::pleg;
use model::runtime::{ContainerState, EventTier, PodObservation};
use model::{PodUid, Timestamp};
use ports::runtime::{PodStatuses, RuntimeResult};
use tokio::sync::oneshot;

use super::pool::on_pool;
use super::{RuntimeClient, call_error};
use crate::look::{Files, Work, look};
use crate::seen::list::Listed;
use crate::seen::{Seen, age, merge};

/// A status may follow its event a little later (containerd: 30 to 100 ms after an exit). Looked at again after one step,
/// then two more, three more ... for a second in all.
const EXPECT_STEP: Duration = Duration::from_millis(5);
const EXPECT_TRIES: u32 = 20;
/// Between failed looks at one pod.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

type Reply = oneshot::Sender<Result<(), CallError>>;

/// What an event promised that a look will show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expect {
    Anything,
    Started,
    Stopped,
    Gone,
}

impl Expect {
    /// Whether what is known of `id` keeps the promise.
    pub(super) fn met(self, id: &str, pod: Option<&PodObservation>) -> bool {
        let sandbox = pod.and_then(|p| p.sandboxes.iter().find(|s| s.id.as_str() == id));
        let container = pod.and_then(|p| p.containers.iter().find(|c| c.id.as_str() == id));
        match (self, sandbox, container) {
            (Self::Anything, _, _) | (_, None, None) => true,
            (Self::Started, Some(_), _) => true,
            (Self::Started, _, Some(c)) => age(c.state) > age(ContainerState::Created),
            (Self::Stopped, Some(s), _) => !s.ready,
            (Self::Stopped, _, Some(c)) => c.state == ContainerState::Exited,
            (Self::Gone, _, _) => false,
        }
    }
}

/// Sandboxes whose state events may carry to one look; with more of them it lists itself.
const CARRIED: usize = 8;

/// Everything to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Whole {
    #[default]
    No,
    /// Ids from a relist that began at this count and time.
    Listed(Listed, u64, Timestamp),
    /// Ids are to be listed by the look.
    Fresh,
}

/// What the next look is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Want {
    whole: Whole,
    ids: BTreeMap<String, (Expect, u32)>,
    carried: Vec<PodStatuses>,
    /// Asked for by an audit alone: what it finds, events have not told.
    audit: bool,
}

impl Want {
    pub(super) fn fresh() -> Self {
        Self { whole: Whole::Fresh, ..Self::default() }
    }

    pub(super) fn listed(listed: Listed, seq: u64, at: Timestamp, audit: bool) -> Self {
        Self { whole: Whole::Listed(listed, seq, at), audit, ..Self::default() }
    }

    pub(super) fn id(id: &str, expect: Expect) -> Self {
        Self { ids: BTreeMap::from([(id.to_owned(), (expect, 0))]), ..Self::default() }
    }

    pub(super) fn carried(statuses: PodStatuses) -> Self {
        Self { carried: vec![statuses], ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.whole == Whole::No && self.ids.is_empty() && self.carried.is_empty()
    }

    fn join(&mut self, other: Self) {
        self.audit = other.audit && (self.is_empty() || self.audit);
        self.whole = match (std::mem::take(&mut self.whole), other.whole) {
            (Whole::No, w) | (w, Whole::No) => w,
            // Two sets of ids of different times: let the look list them itself.
            _ => Whole::Fresh,
        };
        for (id, (expect, tries)) in other.ids {
            let entry = self.ids.entry(id).or_insert((expect, tries));
            *entry = (entry.0.max(expect), entry.1.max(tries));
        }
        for statuses in other.carried {
            // The later word on a sandbox is the whole of it.
            match self.carried.iter_mut().find(|c| c.sandbox.id == statuses.sandbox.id) {
                Some(earlier) => *earlier = statuses,
                None => self.carried.push(statuses),
            }
        }
        if self.carried.len() > CARRIED {
            self.carried.clear();
            self.whole = Whole::Fresh;
        }
    }
}

/// A look under way: the count and time at which it began.
struct Begun {
    seq: u64,
    at: Timestamp,
    want: Want,
}

/// One pod as far as looking at it goes.
#[derive(Debug, Default)]
pub(super) struct Slot {
    want: Want,
    looking: bool,
    /// Asked for before the look under way began / since then.
    serving: Vec<Reply>,
    waiting: Vec<Reply>,
    /// Own calls of the start path under way.
    pub(super) starting: u32,
    failures: u32,
    /// Waits before it looks again.
    resting: bool,
    /// When something last happened to the pod.
    pub(super) touched: u64,
}

impl Slot {
    pub(super) fn is_settled(&self) -> bool {
        !self.looking && self.want.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.is_settled() && self.waiting.is_empty() && self.starting == 0
    }
}

impl RuntimeClient {
    /// Wants a look at a pod, now or right after the one under way.
    pub(super) fn want(&mut self, uid: &PodUid, want: Want, ctx: &mut Ctx<Self>) {
        self.slots.entry(uid.clone()).or_default().want.join(want);
        self.look(uid, ctx);
    }

    /// Looks at once at everything that waits for its next try.
    pub(super) fn wake_all(&mut self, ctx: &mut Ctx<Self>) {
        let uids: Vec<PodUid> = self.slots.keys().cloned().collect();
        for uid in uids {
            self.wake(&uid, ctx);
        }
    }

    pub(super) fn wake(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Some(slot) = self.slots.get_mut(uid) {
            slot.resting = false;
            self.look(uid, ctx);
        }
    }

    /// Starts a look when one is wanted and none is under way.
    fn look(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let (mut seq, mut at) = (self.next_seq(), Self::now(ctx));
        let Some(slot) = self.slots.get_mut(uid) else { return };
        if slot.looking || slot.resting || slot.want.is_empty() {
            return;
        }
        slot.looking = true;
        slot.serving.append(&mut slot.waiting);
        let want = std::mem::take(&mut slot.want);
        if let Whole::Listed(_, list_seq, list_at) = &want.whole {
            (seq, at) = (*list_seq, *list_at);
        }
        let work = self.work(uid, &want);
        let (deps, places, effects) = (self.deps.clone(), self.looks.clone(), ctx.effects());
        let uid = uid.clone();
        let effect = async move {
            let _place = places.acquire_owned().await;
            effects.hit("before-look").await;
            let watch = metrics::Stopwatch::start();
            let files = Files { fs: deps.fs, effects };
            let seen = on_pool(look(deps.runtime, files, work)).await;
            pleg::POD_RELIST_DURATION.observe(watch.seconds());
            seen
        };
        ctx.run(effect, move |this, result, ctx| this.looked(&uid, Begun { seq, at, want }, result, ctx));
    }

    fn work(&self, uid: &PodUid, want: &Want) -> Work {
        let mut work = Work {
            uid: uid.clone(),
            whole: match &want.whole {
                Whole::No => None,
                Whole::Listed(listed, ..) => Some(Some(listed.clone())),
                Whole::Fresh => Some(None),
            },
            sandboxes: Vec::new(),
            containers: Vec::new(),
            carried: want.carried.clone(),
            messages: BTreeMap::new(),
        };
        for id in want.ids.keys() {
            match self.index.sandbox(id) {
                Some(None) => work.sandboxes.push(id.clone()),
                Some(Some(sandbox)) => work.containers.push((id.clone(), sandbox.clone())),
                None => {}
            }
        }
        let known = self.rows.get(uid).into_iter().flat_map(|row| &row.pod.containers);
        let ended = known.filter(|c| c.state == ContainerState::Exited);
        work.messages = ended.map(|c| (c.id.to_string(), c.message.clone())).collect();
        work
    }

    fn looked(&mut self, uid: &PodUid, begun: Begun, result: RuntimeResult<Seen>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("after-look");
        let Begun { seq, at, want } = begun;
        let failed = result.is_err();
        let answer = match result {
            Ok(seen) => {
                let changed = self.take(uid, seen, seq, at);
                // An event that came meanwhile may have told just that.
                let told = self.slots.get(uid).is_some_and(|s| s.touched > seq);
                if changed && want.audit && !told {
                    self.diverged(uid);
                }
                self.check_promises(uid, &want, ctx);
                Ok(())
            }
            Err(e) => {
                tracing::warn!(pod_uid = %uid, error = %e, "cannot look at the pod");
                if e.is_unavailable() {
                    self.lost(&e, ctx);
                }
                Err(call_error(e))
            }
        };
        let slot = self.slots.entry(uid.clone()).or_default();
        slot.looking = false;
        for reply in slot.serving.drain(..) {
            let _ = reply.send(answer.clone());
        }
        if failed {
            slot.want.join(want);
            slot.failures += 1;
            // Somebody who asked meanwhile is not kept waiting.
            slot.resting = slot.waiting.is_empty();
            let rest = RETRY_FIRST.saturating_mul(1 << (slot.failures - 1).min(5)).min(RETRY_MOST);
            let uid = uid.clone();
            ctx.after(rest, move |this, ctx| this.wake(&uid, ctx));
        } else {
            slot.failures = 0;
        }
        self.settled(uid, failed, ctx);
        self.look(uid, ctx);
        if self.slots.get(uid).is_some_and(Slot::is_idle) && !self.rows.contains_key(uid) {
            self.slots.remove(uid);
        }
    }

    /// LIFE-OF-A-POD 12/12: takes what was seen into the row, which wakes the pod's worker; returns whether that changed it.
    fn take(&mut self, uid: &PodUid, seen: Seen, seq: u64, at: Timestamp) -> bool {
        for s in &seen.sandboxes {
            self.index.learn_sandbox(s.id.as_str(), uid, seq);
        }
        for c in &seen.containers {
            self.index.learn_container(c.id.as_str(), uid, &c.sandbox, seq);
        }
        let old = self.rows.get(uid).map(|row| row.pod.clone());
        let before = old.clone().unwrap_or_else(|| Arc::new(PodObservation::empty(uid.clone(), "", "")));
        for id in &seen.gone {
            self.index.bury(id, self.seq);
        }
        let after = merge(&before, seen, &self.index.at(seq));
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

    fn diverged(&mut self, uid: &PodUid) {
        if self.info.tier == EventTier::Relist || !self.relisting.done {
            return;
        }
        self.info.divergences += 1;
        self.relisting.disagreed = true;
        tracing::info!(pod_uid = %uid, divergences = self.info.divergences, "a relist found what no event had told");
    }

    /// Looks again, soon, where an event had promised more than there was to see.
    fn check_promises(&mut self, uid: &PodUid, want: &Want, ctx: &mut Ctx<Self>) {
        let pod = self.rows.get(uid).map(|row| row.pod.clone());
        for (id, &(expect, tries)) in &want.ids {
            if tries == EXPECT_TRIES || expect.met(id, pod.as_deref()) {
                continue;
            }
            let (uid, id) = (uid.clone(), id.clone());
            ctx.after(EXPECT_STEP * (tries + 1), move |this, ctx| {
                let again = Want { ids: BTreeMap::from([(id, (expect, tries + 1))]), ..Want::default() };
                this.want(&uid, again, ctx);
            });
        }
    }
}

impl Handler<ObservePod> for RuntimeClient {
    type Result = Deferred<Self, Result<Arc<PodObservation>, CallError>>;

    fn handle(&mut self, m: ObservePod, ctx: &mut Ctx<Self>) -> Self::Result {
        // Until this generation has listed, what the last one did not finish is unknown.
        let unsure = m.force || self.info.stale || !self.relisting.done;
        let settled = self.slots.get(&m.uid).is_none_or(Slot::is_settled);
        if !unsure && settled {
            return Deferred::ready(Ok(self.row(&m)));
        }
        let (tx, rx) = oneshot::channel();
        let slot = self.slots.entry(m.uid.clone()).or_default();
        if unsure {
            slot.waiting.push(tx);
            self.want(&m.uid, Want::fresh(), ctx);
            // Somebody waits for the answer, good or bad.
            self.wake(&m.uid, ctx);
        } else if slot.want.is_empty() {
            slot.serving.push(tx);
        } else {
            slot.waiting.push(tx);
            self.wake(&m.uid, ctx);
        }
        Deferred::then(rx, move |this: &mut Self, answer, _| match answer {
            Ok(Ok(())) => Ok(this.row(&m)),
            Ok(Err(e)) => Err(e),
            Err(_) => {
                let message = "the look at the pod was given up".to_owned();
                Err(CallError::new(CallErrorKind::Lost, message))
            }
        })
    }
}

impl RuntimeClient {
    fn row(&self, m: &ObservePod) -> Arc<PodObservation> {
        let nothing = || Arc::new(PodObservation::empty(m.uid.clone(), &m.namespace, &m.name));
        self.rows.get(&m.uid).map_or_else(nothing, |row| row.pod.clone())
    }
}

#[cfg(test)]
mod tests;
