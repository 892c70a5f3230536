//! Mirror pods are kept as they should be, beside the pods themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::Ctx;
use contract::config_sources::Source;
use model::PodUid;
use model::core::Pod;
use ports::api::{ApiError, ApiServer};

use super::PodManager;
use crate::housekeeping::Scope;
use crate::mirrors::{self, Original, Written};

impl PodManager {
    /// The full set of mirror pods that the API has.
    pub(super) fn set_mirrors(&mut self, incoming: Vec<Arc<Pod>>) {
        let names = self.mirrors.replace(incoming);
        self.note_mirrors(names);
    }

    /// Mirror pods that came or changed in the API, and pods that went, of which some may be mirrors.
    pub(super) fn change_mirrors(&mut self, changed: Vec<Arc<Pod>>, gone: &[PodUid]) {
        let mut names = self.mirrors.change(changed);
        names.extend(gone.iter().filter_map(|uid| self.mirrors.remove(uid)));
        self.note_mirrors(names);
    }

    fn note_mirrors(&mut self, names: BTreeSet<String>) {
        for name in names {
            self.post_mirror(&name);
            self.mirrors_changed.insert(name);
        }
    }

    /// Posts the static pod of this name again, with its mirror.
    fn post_mirror(&self, name: &str) {
        if let Some((source, pod)) = self.desired.static_pod(name) {
            self.post(source, pod);
        }
    }

    /// Compares mirror pods with their static pods, and starts the writes that are due.
    pub(super) fn sync_mirrors(&mut self, scope: &Scope, ctx: &mut Ctx<Self>) {
        let Some(api) = self.tools.deps.api.clone() else { return };
        if !self.desired.has_delivered(Source::Api) {
            // Whether one exists already is not known yet.
            return;
        }
        let mut names = std::mem::take(&mut self.mirrors_changed);
        match scope {
            Scope::All => {
                names.extend(self.desired.static_pods().map(|(_, pod)| model::pod::full_name(pod)));
                names.extend(self.mirrors.names().cloned());
                self.mirrors.retain(&names);
            }
            Scope::Of(uids) => {
                let of_scope = uids.iter().filter_map(|uid| self.desired.names().of(uid));
                names.extend(of_scope.filter(|n| self.mirrors.has(n) || self.desired.is_static_name(n)).cloned());
            }
        }
        for name in names {
            self.sync_mirror(name, &api, ctx);
        }
    }

    fn sync_mirror(&mut self, name: String, api: &Arc<dyn ApiServer>, ctx: &mut Ctx<Self>) {
        let pod = self.desired.static_pod(&name).map(|(_, pod)| pod.clone());
        let original = self.original(&name, pod.as_deref());
        let view = self.tools.node.get();
        let node = view.node.as_deref().filter(|_| view.api_uid().is_some());
        let Some(write) = self.mirrors.next_write(&name, original, node) else { return };
        let (api, faults) = (api.clone(), ctx.faults());
        let work = async move {
            faults.hit("before mirror").await;
            write.run(&*api).await
        };
        ctx.run(work, move |act, outcome, ctx| act.mirror_written(name, outcome, ctx));
    }

    fn original<'a>(&self, name: &str, pod: Option<&'a Pod>) -> Original<'a> {
        let Some(pod) = pod else {
            return mirrors::undesired(name, self.all_sources_ready(), &self.tools.workers.snapshot());
        };
        let uid = model::pod::uid(pod);
        mirrors::desired(pod, self.admission.is_rejected(&uid), self.workers.row(&uid).as_deref())
    }

    fn mirror_written(&mut self, name: String, outcome: Result<Written, ApiError>, ctx: &mut Ctx<Self>) {
        if let Some(pause) = self.mirrors.written(&name, outcome) {
            ctx.after(pause, move |act, ctx| {
                act.mirrors.resume(&name);
                act.mirrors_changed.insert(name);
                act.run_housekeeping(ctx);
            });
            return;
        }
        self.post_mirror(&name);
        self.mirrors_changed.insert(name);
        self.sync_mirrors(&Scope::Of(BTreeSet::new()), ctx);
    }
}
