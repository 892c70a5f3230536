//! Following: each step of a watch comes back to the actor.

use std::time::Duration;

use actor::Ctx;
use futures::StreamExt;
use futures::stream::BoxStream;
use model::Timestamp;
use model::object::ObjectRef;
use ports::api::Followed;

use super::ObjectStore;
use crate::cache::{CachedObject, Content};
use crate::fetch::store;
use crate::follow::{Target, change, selection};

/// A stream that ended against its promise is opened again after this.
const REOPEN: Duration = Duration::from_secs(1);

impl ObjectStore {
    /// Starts following, from the first list.
    pub(super) fn follow(&mut self, target: Target, ctx: &mut Ctx<Self>) {
        if let (Some(api), Some(selection)) = (&self.deps.api, selection(&target, self.lists.all_services)) {
            let stream = api.follow(selection);
            self.pump(target, stream, ctx);
        }
    }

    /// Waits for the next step of a followed selection, applies it, and goes on.
    fn pump(&mut self, target: Target, mut steps: BoxStream<'static, Followed>, ctx: &mut Ctx<Self>) {
        let next = {
            let target = target.clone();
            ctx.run(async move { (steps.next().await, steps) }, move |act, (step, steps), ctx| match step {
                Some(Followed::Failed(error)) if target == Target::Services && act.lists.must_follow_all(&error) => {
                    act.follow(target, ctx);
                }
                Some(step) => {
                    if act.apply(&target, step, ctx) {
                        act.pump(target, steps, ctx);
                    }
                }
                None => act.reopen(target, ctx),
            })
        };
        if let Target::Object(object) = &target
            && let Some(follow) = self.follows.get_mut(object)
        {
            follow.under_way = Some(next);
        }
    }

    fn reopen(&mut self, target: Target, ctx: &mut Ctx<Self>) {
        tracing::warn!(?target, "the watch ended, it is opened again");
        let again = target.clone();
        let handle = ctx.after(REOPEN, move |act, ctx| act.follow(again, ctx));
        if let Target::Object(object) = &target
            && let Some(follow) = self.follows.get_mut(object)
        {
            follow.under_way = Some(handle);
        }
    }

    /// Answers whether following goes on.
    fn apply(&mut self, target: &Target, step: Followed, ctx: &mut Ctx<Self>) -> bool {
        if let Followed::Failed(error) = &step {
            tracing::info!(?target, %error, "the API server does not answer for a followed selection");
            self.restore(target, error, ctx);
            return true;
        }
        match target {
            Target::Object(object) => return self.apply_object(object, step, Timestamp(ctx.clock().unix_nanos())),
            Target::Services => {
                self.lists.apply_services(step);
                self.sweep_later(ctx);
            }
            Target::RuntimeClasses => self.lists.apply_classes(step),
        }
        self.persist_lists(ctx);
        true
    }

    fn apply_object(&mut self, object: &ObjectRef, step: Followed, at: Timestamp) -> bool {
        let Some(content) = change(object, step) else { return true };
        let last = content.as_ref().is_some_and(Content::immutable);
        store(&self.deps.cache, &self.versions, object, CachedObject { content, at, stale: false });
        if last && let Some(follow) = self.follows.get_mut(object) {
            follow.under_way = None;
        }
        !last
    }
}
