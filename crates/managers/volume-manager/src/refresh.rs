//! Keeping the files of running pods in line with their objects.
//!
//! Nothing is polled: the board of the object store tells of changes, tokens say when they are to be asked for anew, and
//! every MountVolumes of a pod's worker brings new labels and annotations.

use std::collections::BTreeMap;
use std::time::Duration;

use actor::{AsyncContext, Ctx};
use model::{PodUid, Timestamp, pod};

use crate::actor::{Attempt, FIRST_PAUSE, VolumeManager};
use crate::fetch;
use crate::ledger::{Placed, Wish};

/// Longest pause between tries after failures.
const LAST_PAUSE: Duration = Duration::from_secs(122);
/// A token that should have been renewed already is asked for again after this: its store tried just now.
const OVERDUE_PAUSE: Duration = Duration::from_secs(10);

/// What brought a try about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occasion {
    /// The pod's worker asked.
    Asked,
    /// An object changed, or it was time.
    Refreshed,
}

impl VolumeManager {
    /// Follows the objects of all pods, also of those that a former generation set up.
    pub(crate) fn follow_objects(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, _) in self.tools.deps.ledger.placed() {
            self.refresh(uid, ctx);
        }
        let changes = self.tools.versions.changes();
        ctx.watch(changes, |act, _version, ctx| act.objects_moved(ctx));
    }

    fn objects_moved(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, seen) in self.tools.deps.ledger.placed() {
            if fetch::versions(&self.tools.versions, seen.keys().cloned()) != seen {
                self.refresh(uid, ctx);
            }
        }
    }

    /// Brings a pod's volumes in line. One at a time; its end looks whether there is more to do.
    fn refresh(&mut self, uid: PodUid, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.tools.deps.ledger.get(&uid).filter(|e| e.placed.is_some()) else { return };
        if !self.refreshing.insert(uid.clone()) {
            return;
        }
        let (tools, moment, of, wish) = (self.tools.clone(), Self::moment(ctx), uid.clone(), entry.wish.clone());
        let work = async move {
            moment.effects.hit("refresh").await;
            let out = tools.attempt(&of, &wish, &moment).await;
            moment.effects.hit("refreshed").await;
            out
        };
        ctx.run(work, move |act: &mut Self, attempt, ctx| {
            act.refreshing.remove(&uid);
            if let Some(attempt) = attempt {
                act.note(&entry.wish, &attempt, Occasion::Refreshed, ctx);
            }
        });
    }

    /// Remembers what is in place, tells of what could not be brought in line, and arranges the next look.
    pub(crate) fn note(&mut self, wish: &Wish, attempt: &Attempt, occasion: Occasion, ctx: &mut Ctx<Self>) {
        let Attempt { pod, outcome, seen, due } = attempt;
        let uid = pod::uid(pod);
        let troubles: Vec<_> = outcome.failed.iter().chain(&outcome.stale).collect();
        let before = self.tools.deps.ledger.get(&uid).and_then(|e| e.placed);
        if before.is_none() && troubles.is_empty() && fetch::needs(pod).is_empty() {
            return;
        }
        let told: BTreeMap<_, _> = troubles.iter().map(|f| (f.volume.clone(), f.error.clone())).collect();
        let same = before.as_ref().filter(|b| b.told == told && !told.is_empty());
        if same.is_none() || occasion == Occasion::Refreshed {
            troubles.iter().for_each(|f| self.tools.tell(pod, f));
        }
        let pause = match (same, occasion) {
            (None, _) => FIRST_PAUSE,
            (Some(b), Occasion::Asked) => b.pause,
            (Some(b), Occasion::Refreshed) => (b.pause * 2).min(LAST_PAUSE),
        };
        let retry = (!told.is_empty()).then_some(pause);
        if !self.tools.deps.ledger.place(&uid, wish, Placed { seen: seen.clone(), told, pause }) {
            return;
        }
        let renew = due.map(|due| wait_until(due, Timestamp(ctx.clock().unix_nanos())));
        self.disarm(&uid, ctx);
        if let Some(wait) = [retry, renew].into_iter().flatten().min() {
            let of = uid.clone();
            let timer = ctx.after(wait, move |act, ctx| {
                act.timers.remove(&of);
                act.refresh(of, ctx);
            });
            self.timers.insert(uid.clone(), timer);
        }
        if fetch::versions(&self.tools.versions, seen.keys().cloned()) != *seen {
            self.refresh(uid, ctx);
        }
    }

    pub(crate) fn disarm(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Some(timer) = self.timers.remove(uid) {
            ctx.cancel_future(timer);
        }
    }
}

fn wait_until(due: Timestamp, now: Timestamp) -> Duration {
    match u64::try_from(due.nanos_since(now)) {
        Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos),
        _ => OVERDUE_PAUSE,
    }
}
