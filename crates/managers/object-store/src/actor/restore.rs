//! What an earlier daemon left in the sealed cache serves while the API server is away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use model::Timestamp;
use model::core::Service;
use model::object::ObjectRef;
use ports::api::ApiError;

use super::ObjectStore;
use crate::cache::CachedObject;
use crate::fetch::{is_away, store};
use crate::follow::Target;
use crate::persist::{CLASSES, SERVICES, encode, line_of, tokens_of};

/// Many services change at a time: they are written this long after the first change.
const SETTLE: Duration = Duration::from_secs(1);
/// Lines that nobody has claimed by then, counted from the server's first word, are removed.
const UNCLAIMED: Duration = Duration::from_secs(10 * 60);

impl ObjectStore {
    /// The server does not answer for a selection that nothing is known of: the sealed cache does.
    pub(super) fn restore(&mut self, target: &Target, error: &ApiError, ctx: &mut Ctx<Self>) {
        match target {
            Target::Object(object) => self.restore_object(object, error, ctx),
            Target::Services if !*self.lists.services_synced.borrow() && is_away(error) => {
                let cache = self.deps.cache.clone();
                let read = async move { cache.read::<Vec<Service>>(SERVICES).await };
                ctx.run(read, |act, kept, _ctx| {
                    if let Some(kept) = kept.filter(|_| !*act.lists.services_synced.borrow()) {
                        tracing::warn!("services are those of an earlier run: the API server is away");
                        act.lists.set_services(kept.into_iter().map(Arc::new));
                    }
                });
            }
            Target::RuntimeClasses if !*self.lists.classes_synced.borrow() && is_away(error) => {
                let cache = self.deps.cache.clone();
                let read = async move { cache.read::<BTreeMap<String, String>>(CLASSES).await };
                ctx.run(read, |act, kept, _ctx| {
                    if let Some(kept) = kept.filter(|_| !*act.lists.classes_synced.borrow()) {
                        act.lists.set_classes(kept);
                    }
                });
            }
            // Files of an earlier try stay in their volumes.
            Target::TrustBundles(_) | Target::CertificateRequests | Target::Services | Target::RuntimeClasses => {}
        }
    }

    fn restore_object(&mut self, object: &ObjectRef, error: &ApiError, ctx: &mut Ctx<Self>) {
        let cached = self.deps.cache.objects.get(object);
        if !is_away(error) {
            // It answers, and refuses: what an earlier run was given is not given on.
            if cached.is_some_and(|c| c.stale) {
                self.deps.cache.objects.remove(object);
                self.versions.remove(object);
            }
            return;
        }
        if cached.is_some() {
            return;
        }
        let (cache, object) = (self.deps.cache.clone(), object.clone());
        let wanted = object.clone();
        ctx.run(async move { cache.restore(&wanted).await }, move |act, kept, ctx| {
            let unknown = act.deps.cache.objects.get(&object).is_none() && act.follows.contains_key(&object);
            if let Some(content) = kept.filter(|_| unknown) {
                let ObjectRef { namespace, name, .. } = &object;
                tracing::warn!(
                    kind = object.kind.singular(),
                    namespace,
                    name,
                    "object of an earlier run: the API server is away"
                );
                let at = Timestamp(ctx.clock().unix_nanos());
                let cached = CachedObject { content: Some(content), at, stale: true };
                store(&act.deps.cache, &act.versions, &object, cached);
            }
        });
    }

    /// Services or classes changed: written a little later, all at once.
    pub(super) fn persist_lists(&mut self, ctx: &mut Ctx<Self>) {
        if self.deps.cache.sealed.is_none() || std::mem::replace(&mut self.lists_due, true) {
            return;
        }
        ctx.after(SETTLE, |act, _ctx| {
            act.lists_due = false;
            let Some(sealed) = &act.deps.cache.sealed else { return };
            if *act.lists.services_synced.borrow() {
                sealed.put(SERVICES.to_owned(), encode(&act.lists.services.all()));
            }
            if *act.lists.classes_synced.borrow() {
                sealed.put(CLASSES.to_owned(), encode(&act.lists.classes));
            }
        });
    }

    /// Some time after the server's first word: what no pod has claimed belongs to nobody any more.
    pub(super) fn sweep_later(&mut self, ctx: &mut Ctx<Self>) {
        if self.deps.cache.sealed.is_none() || std::mem::replace(&mut self.swept, true) {
            return;
        }
        ctx.after(UNCLAIMED, |act, ctx| {
            let Some(sealed) = act.deps.cache.sealed.clone() else { return };
            ctx.run(async move { sealed.lines().await }, |act, lines, _ctx| {
                let Some(sealed) = &act.deps.cache.sealed else { return };
                let objects: Vec<String> = act.holds.objects().map(line_of).collect();
                let tokens: Vec<String> = act.deps.cache.holds.snapshot().keys().map(tokens_of).collect();
                for line in lines {
                    let claimed = line == SERVICES
                        || line == CLASSES
                        || objects.contains(&line)
                        || tokens.iter().any(|prefix| line.starts_with(prefix));
                    if !claimed {
                        sealed.put(line, None);
                    }
                }
            });
        });
    }
}
