//! Work for one subject: whom a crash is blamed on, and what is set aside.

use super::{Ctx, Managed, Parked};
use crate::faults::Action;
use crate::group::Strategy;
use crate::poison::{SetAside, Subject};
use crate::type_name::short;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Tells that wait at one actor because their subject is set aside; further ones are dropped.
const PARKED: usize = 64;

impl<A: Managed> Ctx<A> {
    /// Does a part of a turn that is about one subject of many. When it crashed the actor twice it is skipped for a while,
    /// so that the others get their turn; false then, and the caller leaves the subject as it was.
    pub fn for_subject(&mut self, subject: &str, work: impl FnOnce(&mut Self)) -> bool {
        let subject: Subject = subject.into();
        let record = self.record().clone();
        if record.poison.rest(self.during, &subject).is_some() {
            record.count.set_aside.fetch_add(1, Relaxed);
            return false;
        }
        let before = self.set_subject(Some(subject));
        self.strike_subject();
        work(self);
        self.set_subject(before);
        true
    }

    /// Fault point `for:<subject>`, of every piece of work that is about one.
    pub(crate) fn strike_subject(&mut self) {
        let Some(subject) = self.subject.as_ref().filter(|_| self.kernel.faults().on()) else { return };
        let decided = self.kernel.faults().decide_for(self.this.name(), subject);
        if let Some((action @ (Action::Panic | Action::Kill), point)) = decided {
            action.strike(&point);
        }
    }

    /// Sets for whom the work is; gives for whom it was before.
    pub(crate) fn set_subject(&mut self, subject: Option<Subject>) -> Option<Subject> {
        std::mem::replace(&mut self.subject, subject)
    }

    /// A tell waits until its subject may try again. False: too many wait already.
    pub(crate) fn park(
        &mut self,
        label: &'static str,
        rest: Duration,
        f: impl FnOnce(&mut A, &mut Self) + 'static,
    ) -> bool {
        if self.parked.len() >= PARKED {
            return false;
        }
        let number = self.parked.last_key_value().map_or(0, |(last, _)| last + 1);
        self.parked.insert(number, Parked { label, until: self.clock().now() + rest, work: Box::new(f) });
        self.await_parked(number);
        true
    }

    /// Sets the timer of a tell that waits. One that is due is no longer among them when it crashes the actor.
    fn await_parked(&mut self, number: u64) {
        let Some(Parked { label, until, .. }) = self.parked.get(&number) else { return };
        let (label, rest) = (*label, until.saturating_duration_since(self.clock().now()));
        self.later(label, rest, move |actor, ctx| {
            if let Some(parked) = ctx.parked.remove(&number) {
                (parked.work)(actor, ctx);
            }
        });
    }

    /// Timers end with their generation: the next one waits on for what the one before had set aside.
    pub(super) fn await_all_parked(&mut self) {
        for number in self.parked.keys().copied().collect::<Vec<_>>() {
            self.await_parked(number);
        }
    }

    /// After a crash: what is set aside for it. An actor that is alone in its group's eyes backs off instead.
    pub(crate) fn blame(&mut self, cause: &str) -> Option<SetAside> {
        let subject = self.subject.take()?;
        if self.group.policy().strategy == Strategy::Isolated {
            return None;
        }
        let (crashes, rest) = self.record().poison.note(self.during, &subject, cause)?;
        let aside = SetAside {
            actor: self.this.name().to_string(),
            what: short(self.during),
            subject: subject.to_string(),
            crashes,
            rest,
            cause: cause.to_owned(),
        };
        self.kernel.report_set_aside(&aside);
        Some(aside)
    }
}
