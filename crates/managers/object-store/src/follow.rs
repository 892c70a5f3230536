//! What the API server tells of followed objects.

use std::time::Duration;

use actor::Ctx;
use futures::StreamExt;
use futures::stream::BoxStream;
use model::Timestamp;
use model::object::{ObjectKind, ObjectRef};
use ports::api::{ApiError, Followed, Kind, Object, Selection};

use crate::actor::ObjectStore;
use crate::fetch::note;
use crate::ledger::{Content, Seen};

/// A stream that ended against its promise is opened again after this.
const REOPEN: Duration = Duration::from_secs(1);

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One object that pods name.
    Object(ObjectRef),
    /// Services that have an address.
    Services,
    /// Runtime classes.
    RuntimeClasses,
}

/// What is listed and watched for a target; `None`: a kind that is not known here.
pub(crate) fn selection(target: &Target, all_services: bool) -> Option<Selection> {
    Some(match target {
        Target::Object(object) => Selection {
            kind: match object.kind {
                ObjectKind::ConfigMap => Kind::ConfigMap,
                ObjectKind::Secret => Kind::Secret,
                ObjectKind::Unknown => return None,
            },
            namespace: Some(object.namespace.clone()),
            field_selector: format!("metadata.name={}", object.name),
        },
        Target::Services => {
            let with_address = if all_services { "" } else { "spec.clusterIP!=None" };
            Selection { kind: Kind::Service, namespace: None, field_selector: with_address.to_owned() }
        }
        Target::RuntimeClasses => {
            Selection { kind: Kind::RuntimeClass, namespace: None, field_selector: String::new() }
        }
    })
}

impl ObjectStore {
    /// Waits for the next step of a followed selection, takes it, and goes on.
    pub(crate) fn pump(&mut self, target: Target, mut steps: BoxStream<'static, Followed>, ctx: &mut Ctx<Self>) {
        let next = {
            let target = target.clone();
            ctx.run(async move { (steps.next().await, steps) }, move |act, (step, steps), ctx| match step {
                Some(Followed::Failed(error)) if target == Target::Services && act.must_follow_all(&error) => {
                    act.follow(target, ctx);
                }
                Some(step) => {
                    if act.take(&target, step, ctx) {
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

    /// Whether the server does not know the selector of services, and nobody noticed yet.
    fn must_follow_all(&mut self, error: &ApiError) -> bool {
        let unknown = error.code() == Some(400) && !self.all_services;
        self.all_services |= unknown;
        unknown
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
    fn take(&mut self, target: &Target, step: Followed, ctx: &mut Ctx<Self>) -> bool {
        if let Followed::Failed(error) = &step {
            tracing::info!(?target, %error, "the API server does not answer for a followed selection");
            self.stand_in(target, error, ctx);
            return true;
        }
        match target {
            Target::Object(object) => return self.take_object(object, step, Timestamp(ctx.clock().unix_nanos())),
            Target::Services => {
                self.take_services(step);
                self.sweep_later(ctx);
            }
            Target::RuntimeClasses => self.take_classes(step),
        }
        self.keep_lists(ctx);
        true
    }

    fn take_object(&mut self, object: &ObjectRef, step: Followed, at: Timestamp) -> bool {
        let content = match step {
            Followed::All(objects) => objects.into_iter().find_map(|o| of(object, o)),
            Followed::Applied(o) => match of(object, o) {
                Some(content) => Some(content),
                None => return true,
            },
            Followed::Deleted(o) => match of(object, o) {
                Some(_) => None,
                None => return true,
            },
            Followed::Failed(_) => return true,
        };
        let last = content.as_ref().is_some_and(Content::immutable);
        note(&self.deps.ledger, &self.versions, object, Seen { content, at, stale: false });
        if last && let Some(follow) = self.follows.get_mut(object) {
            follow.under_way = None;
        }
        !last
    }

    fn take_services(&mut self, step: Followed) {
        let service = |o| match o {
            Object::Service(service) => Some(service),
            _ => None,
        };
        match step {
            Followed::All(all) => {
                self.services.replace(all.into_iter().filter_map(service));
                self.services_synced.send_replace(true);
            }
            Followed::Applied(o) => service(o).iter().for_each(|s| self.services.put(s)),
            Followed::Deleted(o) => service(o).iter().for_each(|s| self.services.remove(s)),
            Followed::Failed(_) => {}
        }
    }

    fn take_classes(&mut self, step: Followed) {
        let class = |o| match o {
            Object::RuntimeClass(c) => Some((c.metadata.name.clone().unwrap_or_default(), c.handler.clone())),
            _ => None,
        };
        match step {
            Followed::All(all) => {
                self.classes = all.into_iter().filter_map(class).collect();
                self.classes_synced.send_replace(true);
            }
            Followed::Applied(o) => self.classes.extend(class(o)),
            Followed::Deleted(o) => {
                if let Some((name, _)) = class(o) {
                    self.classes.remove(&name);
                }
            }
            Followed::Failed(_) => {}
        }
    }
}

/// The content, if this is the object that is meant.
fn of(object: &ObjectRef, found: Object) -> Option<Content> {
    let content = match (object.kind, found) {
        (ObjectKind::ConfigMap, Object::ConfigMap(o)) => Content::config_map(unshare(o)),
        (ObjectKind::Secret, Object::Secret(o)) => Content::secret(unshare(o)),
        _ => return None,
    };
    (content.name() == object.name).then_some(content)
}

fn unshare<T: Clone>(object: std::sync::Arc<T>) -> T {
    std::sync::Arc::unwrap_or_clone(object)
}
