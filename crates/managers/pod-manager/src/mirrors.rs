//! Keeps mirror pods as they should be. Nothing waits for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::config_sources::Source;
use contract::pod_worker::WorkerPhase;
use model::PodUid;
use model::core::Pod;
use ports::api::{ApiError, ApiExt, ApiServer, Preconditions};

use crate::actor::PodManager;
use crate::mirror::{Original, Step, mirror_pod, step};

/// First pause after a failure; doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause after a failure.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Mirror pods by full name, and what is under way for them.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    /// As the API has them.
    pub(crate) known: BTreeMap<String, Arc<Pod>>,
    jobs: BTreeMap<String, Job>,
}

/// Work on one mirror pod.
#[derive(Debug, Default)]
struct Job {
    running: bool,
    /// Nothing is tried before the pause is over.
    paused: bool,
    failures: u32,
}

/// What became of a mirror pod.
enum Outcome {
    There(Arc<Pod>),
    Gone,
}

impl PodManager {
    /// The full set of mirror pods that the API has.
    pub(crate) fn set_mirrors(&mut self, incoming: Vec<Arc<Pod>>) {
        let next: BTreeMap<String, Arc<Pod>> =
            incoming.into_iter().map(|pod| (model::pod::full_name(&pod), pod)).collect();
        let before = std::mem::replace(&mut self.mirrors.known, next);
        let now = &self.mirrors.known;
        let changed: Vec<String> =
            before.keys().chain(now.keys()).filter(|name| before.get(*name) != now.get(*name)).cloned().collect();
        for name in changed {
            self.show_mirror(&name);
        }
    }

    /// Posts the static pod of this name again, with its mirror.
    fn show_mirror(&mut self, name: &str) {
        if let Some((source, pod)) = self.static_pod(name) {
            self.post(source, &pod);
        }
    }

    fn static_pods(&self) -> impl Iterator<Item = (Source, &PodUid, &Arc<Pod>)> {
        let of_nodes = self.desired.iter().filter(|(source, _)| **source != Source::Api);
        of_nodes.flat_map(|(source, pods)| pods.iter().map(|(uid, pod)| (*source, uid, pod)))
    }

    fn static_pod(&self, name: &str) -> Option<(Source, Arc<Pod>)> {
        let found = self.static_pods().find(|(_, _, pod)| model::pod::full_name(pod) == name);
        found.map(|(source, _, pod)| (source, pod.clone()))
    }

    /// Looks at every mirror pod and starts what is to be done.
    pub(crate) fn keep_mirrors(&mut self, ctx: &mut Ctx<Self>) {
        let Some(api) = self.tools.deps.api.clone() else { return };
        if !self.seen(Source::Api) {
            // Whether one exists already is not known yet.
            return;
        }
        let mut names: Vec<String> = self.static_pods().map(|(_, _, pod)| model::pod::full_name(pod)).collect();
        names.extend(self.mirrors.known.keys().cloned());
        names.sort();
        names.dedup();
        for name in names {
            self.keep_mirror(&name, &api, ctx);
        }
    }

    fn keep_mirror(&mut self, name: &str, api: &Arc<dyn ApiServer>, ctx: &mut Ctx<Self>) {
        let original = self.static_pod(name).map(|(_, pod)| pod);
        let mirror = self.mirrors.known.get(name);
        let step = step(self.original(name, original.as_ref()), mirror.map(|m| &**m));
        let busy = self.mirrors.jobs.get(name).is_some_and(|job| job.running || job.paused);
        if step == Step::Nothing || busy {
            return;
        }
        let about = mirror.cloned().or_else(|| original.clone());
        let Some(about) = about else { return };
        let body = match &step {
            Step::Create | Step::Replace(_) => {
                let node = self.tools.node.get();
                let node = node.node.as_ref().filter(|_| node.api_uid().is_some());
                let body = original.as_ref().zip(node).and_then(|(pod, node)| mirror_pod(pod, node));
                if body.is_none() && step == Step::Create {
                    return;
                }
                body
            }
            Step::Nothing | Step::Delete(_) => None,
        };
        self.mirrors.jobs.entry(name.to_owned()).or_default().running = true;
        let (api, faults, key) = (api.clone(), ctx.faults(), name.to_owned());
        let work = async move {
            faults.hit("before mirror").await;
            carry_out(&*api, &step, &about, body).await
        };
        ctx.run(work, move |act, outcome, ctx| act.mirror_done(&key, outcome, ctx));
    }

    fn original<'a>(&self, name: &str, pod: Option<&'a Arc<Pod>>) -> Original<'a> {
        let Some(pod) = pod else { return self.absent_or_leaving(name) };
        let uid = model::pod::uid(pod);
        match self.tools.workers.get(&uid) {
            _ if self.rejected.contains_key(&uid) => Original::Pauses,
            Some(w) if w.phase >= WorkerPhase::Terminated => Original::Ended,
            Some(w) if w.phase == WorkerPhase::Syncing && !w.termination_requested => Original::Runs(pod),
            _ => Original::Pauses,
        }
    }

    fn absent_or_leaving(&self, name: &str) -> Original<'static> {
        let stops = |w: &contract::pod_worker::WorkerState| {
            let of_that_name =
                w.pod.as_ref().is_some_and(|p| model::pod::is_static(p) && model::pod::full_name(p) == name);
            of_that_name && w.phase < WorkerPhase::Terminated
        };
        // Before all sources have spoken nobody knows whose mirror it is.
        if !self.all_sources_ready() || self.tools.workers.snapshot().values().any(|w| stops(w)) {
            return Original::Leaves;
        }
        Original::Absent
    }

    fn mirror_done(&mut self, name: &str, outcome: Result<Outcome, ApiError>, ctx: &mut Ctx<Self>) {
        let job = self.mirrors.jobs.entry(name.to_owned()).or_default();
        job.running = false;
        match outcome {
            Ok(Outcome::There(pod)) => {
                job.failures = 0;
                self.mirrors.known.insert(name.to_owned(), pod);
                self.show_mirror(name);
            }
            Ok(Outcome::Gone) => {
                self.mirrors.jobs.remove(name);
                self.mirrors.known.remove(name);
                self.show_mirror(name);
            }
            Err(error) => {
                job.failures += 1;
                job.paused = true;
                let pause = FIRST_PAUSE.saturating_mul(1 << (job.failures - 1).min(6)).min(MAX_PAUSE);
                tracing::warn!(pod = name, %error, pause_s = pause.as_secs(), "mirror pod is not as it should be");
                let key = name.to_owned();
                ctx.after(pause, move |act, ctx| {
                    if let Some(job) = act.mirrors.jobs.get_mut(&key) {
                        job.paused = false;
                    }
                    act.keep_mirrors(ctx);
                });
                return;
            }
        }
        self.keep_mirrors(ctx);
    }
}

async fn carry_out(api: &dyn ApiServer, step: &Step, about: &Pod, body: Option<Pod>) -> Result<Outcome, ApiError> {
    let (namespace, name) = (model::pod::namespace(about), model::pod::name(about));
    if let Step::Delete(uid) | Step::Replace(uid) = step {
        let when = Preconditions { uid: Some(uid.clone()).filter(|u| !u.is_empty()), grace_s: Some(0) };
        match api.delete::<Pod>(Some(namespace), name, when).await {
            Ok(()) => tracing::info!(pod = name, "mirror pod removed"),
            Err(e) if e.is_not_found() || e.is_conflict() => {}
            Err(e) => return Err(e),
        }
    }
    let Some(body) = body else { return Ok(Outcome::Gone) };
    match api.create(Some(namespace), &body).await {
        Ok(made) => Ok(Outcome::There(Arc::new(made))),
        Err(e) if e.is_already_exists() => {
            let found: Pod = api.get(Some(namespace), name).await?;
            if model::pod::is_mirror(&found) {
                return Ok(Outcome::There(Arc::new(found)));
            }
            // Somebody's own pod has the name: it is not ours to remove.
            Err(e)
        }
        Err(e) => Err(e),
    }
}
