//! Following: each step of a watch comes back to the actor.

use std::time::Duration;

use actor::{Ctx, SpawnHandle};
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
        let selection = selection(&target, self.lists.all_services, &self.config.node_name);
        if let (Some(api), Some(selection)) = (&self.deps.api, selection) {
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
        self.under_way(&target, next);
    }

    fn reopen(&mut self, target: Target, ctx: &mut Ctx<Self>) {
        tracing::warn!(?target, "the watch ended, it is opened again");
        let again = target.clone();
        let handle = ctx.after(REOPEN, move |act, ctx| act.follow(again, ctx));
        self.under_way(&target, handle);
    }

    /// What is to be cancelled when nobody holds the target any more.
    fn under_way(&mut self, target: &Target, handle: SpawnHandle) {
        if *target == Target::CertificateRequests {
            self.certificates.following = Some(handle);
        } else if let Some(follow) = target.held_as().and_then(|held| self.follows.get_mut(&held)) {
            follow.under_way = Some(handle);
        }
    }

    /// Answers whether following goes on.
    fn apply(&mut self, target: &Target, step: Followed, ctx: &mut Ctx<Self>) -> bool {
        if let Followed::Failed(error) = &step {
            tracing::info!(?target, %error, "the API server does not answer for a followed selection");
            if let Target::TrustBundles(_) = target {
                self.bundles.not_listed();
            }
            self.restore(target, error, ctx);
            return true;
        }
        match target {
            Target::Object(object) => return self.apply_object(object, step, Timestamp(ctx.clock().unix_nanos())),
            Target::TrustBundles(_) => {
                self.apply_bundles(step);
                return true;
            }
            Target::CertificateRequests => {
                self.apply_requests(step, ctx);
                return true;
            }
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
