//! Who serves each role now, and how one actor follows another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{ActorRef, Family, Managed};
use contract::{Crew, Role, Wiring};
use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture, Shared};
use model::PodUid;

/// How long a replaced actor may work off what it was sent before.
pub const HANDOVER: Duration = Duration::from_secs(30);

/// An actor, or one per pod, without its type.
pub(super) struct Serving {
    /// Of a role with one actor per pod.
    members: Box<dyn Fn() -> Vec<PodUid> + Send + Sync>,
    end: Box<End>,
}

/// Lets the actor (of a pod) work off its queue and end; completes when it is gone.
type End = dyn Fn(Option<&PodUid>) -> BoxFuture<'static, ()> + Send + Sync;

fn ended<A: Managed>(actor: ActorRef<A>) -> BoxFuture<'static, ()> {
    actor.stop();
    async move { actor.stopped().await }.boxed()
}

impl Serving {
    /// `before`: what the actor itself waits for.
    pub(super) fn one<A: Managed>(actor: ActorRef<A>, before: Option<Shared<BoxFuture<'static, ()>>>) -> Self {
        let end = move |_: Option<&PodUid>| {
            let (gone, before) = (ended(actor.clone()), before.clone());
            // Of three that follow each other at once the second may have nothing to do, while the first has.
            async move {
                futures::join!(gone, OptionFuture::from(before));
            }
            .boxed()
        };
        Serving { members: Box::new(Vec::new), end: Box::new(end) }
    }

    pub(super) fn family<A: Managed>(family: Arc<Family<PodUid, A>>) -> Self {
        let all = family.clone();
        let end = move |uid: Option<&PodUid>| match uid.and_then(|uid| family.member(uid)) {
            Some(member) => ended(member),
            None => futures::future::ready(()).boxed(),
        };
        Serving { members: Box::new(move || all.keys()), end: Box::new(end) }
    }

    pub(super) fn members(&self) -> Vec<PodUid> {
        (self.members)()
    }

    /// What its successor waits for.
    pub(super) fn end(&self, role: &'static str, uid: Option<&PodUid>) -> BoxFuture<'static, ()> {
        let (gone, uid) = ((self.end)(uid), uid.cloned());
        let in_time = async move {
            if tokio::time::timeout(HANDOVER, gone).await.is_err() {
                tracing::error!(role, ?uid, "the replaced actor does not end; from now on its posts are refused");
            }
        };
        in_time.boxed()
    }
}

/// All roles that have an actor.
#[derive(Default)]
pub(super) struct AllServing(Mutex<BTreeMap<&'static str, Serving>>);

impl AllServing {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Serving>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, role: &str) -> Option<Serving> {
        self.lock().remove(role)
    }

    pub(super) fn put(&self, role: &'static str, serving: Serving) {
        self.lock().insert(role, serving);
    }

    /// Lets the one actor of a role work off its queue and end.
    pub(super) fn stop(&self, role: &str) {
        if let Some(serving) = self.lock().get(role) {
            drop((serving.end)(None));
        }
    }
}

/// The capabilities of one actor, generation after generation. The first is issued when the actor is built, which ends the
/// right to post of whoever had the place.
pub(super) struct Line<R: Role> {
    wiring: Wiring,
    member: Option<PodUid>,
    first: Option<Crew<R>>,
}

impl<R: Role> Line<R> {
    pub(super) fn of(wiring: &Wiring, member: Option<&PodUid>) -> Self {
        Line { wiring: wiring.clone(), member: member.cloned(), first: None }
    }

    pub(super) fn next(&mut self) -> Crew<R> {
        let Line { wiring, member, first } = self;
        let issue = || match member {
            Some(uid) => wiring.member_crew(uid.as_str()),
            None => wiring.crew(),
        };
        first.get_or_insert_with(issue).succeed()
    }
}
