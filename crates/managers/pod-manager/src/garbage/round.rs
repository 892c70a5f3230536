//! One round of the garbage collection; it runs beside the actor's turns.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use actor::{Class, Effects};
use contract::runtime::{CallError, RemoveContainer, RemovePodSandbox, StopContainer, StopPodSandbox};
use futures::StreamExt;
use model::runtime::ContainerState;
use model::{PodUid, Timestamp};
use ports::host::{HostFs, HostResult, remove_log_files};

use super::plan::{DeadContainer, GcPlan, content_removable, log_dir_uid, plan, runtime_removable, symlink_container};
use crate::deps::Tools;

/// Journal lines of pod workers.
const WORKER_LINES: [&str; 2] = ["worker/", "history/"];

/// The journal line in which a pod's worker keeps what it has to remember.
pub(crate) fn worker_line(uid: &PodUid) -> String {
    format!("{}{uid}", WORKER_LINES[0])
}

/// Removals under way at the same time.
const REMOVALS: usize = 4;

/// One round of the container garbage collection.
pub(crate) struct Round {
    pub(crate) tools: Arc<Tools>,
    pub(crate) desired: BTreeSet<PodUid>,
    pub(crate) sources_ready: bool,
    /// A disk runs short: what ended pods left goes, too.
    pub(crate) thorough: bool,
    pub(crate) now: Timestamp,
    pub(crate) effects: Effects,
}

impl Round {
    pub(crate) async fn run(self) {
        let workers = self.tools.workers.snapshot();
        let pods = self.tools.observed.snapshot();
        if self.tools.runtime.get().stale {
            return;
        }
        let is_over = |uid: &PodUid| self.thorough && runtime_removable(uid, &workers);
        let removable =
            |uid: &PodUid| (self.sources_ready && content_removable(uid, &workers, &self.desired)) || is_over(uid);
        let plan = plan(&pods, removable, self.tools.config.gc, self.now);
        self.remove(plan).await;
        if self.sources_ready {
            let in_runtime: BTreeSet<PodUid> = pods.into_keys().collect();
            self.sweep_journal(&in_runtime).await;
            self.remove_logs(&in_runtime).await;
        }
    }

    /// A pod that vanished while the daemon was away leaves lines that no worker removes.
    async fn sweep_journal(&self, in_runtime: &BTreeSet<PodUid>) {
        for of in WORKER_LINES {
            self.sweep_lines(of, in_runtime).await;
        }
    }

    async fn sweep_lines(&self, of: &'static str, in_runtime: &BTreeSet<PodUid>) {
        let workers = self.tools.workers.snapshot();
        let known = |uid: &PodUid| workers.contains_key(uid) || self.desired.contains(uid) || in_runtime.contains(uid);
        let journal = self.tools.deps.journal.clone();
        let listed = self.effects.attempt(Class::Journal, move || journal.keys(of)).await;
        let keys = match listed {
            Ok(Ok(keys)) => keys,
            Ok(Err(e)) => return tracing::warn!(error = %e, "journal is not swept"),
            Err(e) => return tracing::warn!(error = %e, "journal is not swept"),
        };
        let gone = keys.into_iter().filter(|k| !known(&PodUid::from(k.trim_start_matches(of))));
        let gone: Vec<String> = gone.collect();
        let journal = self.tools.deps.journal.clone();
        let swept =
            self.effects.attempt(Class::Journal, move || gone.iter().try_for_each(|key| journal.remove(key))).await;
        if let Ok(Err(e)) = swept {
            tracing::warn!(error = %e, "journal is not swept");
        }
    }

    async fn remove(&self, plan: GcPlan) {
        // Pods side by side, the containers of one in their order.
        futures::stream::iter(plan.containers.chunk_by(|a, b| a.uid == b.uid))
            .for_each_concurrent(REMOVALS, |of_pod| async move {
                for c in of_pod {
                    if let Err(e) = self.remove_container(c).await {
                        tracing::warn!(container = %c.id, error = %e, "dead container is not removed");
                    }
                }
            })
            .await;
        futures::stream::iter(plan.sandboxes)
            .for_each_concurrent(REMOVALS, |(uid, sandbox)| async move {
                let stop = StopPodSandbox { uid: uid.clone(), sandbox: sandbox.clone() };
                let removed = match self.tools.crew.call(stop).await {
                    Ok(()) => {
                        let remove = RemovePodSandbox { uid, sandbox: sandbox.clone() };
                        self.tools.crew.call(remove).await
                    }
                    Err(e) => Err(e),
                };
                if let Err(e) = removed {
                    tracing::warn!(%sandbox, error = %e, "dead sandbox is not removed");
                }
            })
            .await;
    }

    /// Logs go first: a container that stays because of a failure is tried again, and its logs with it.
    async fn remove_container(&self, c: &DeadContainer) -> Result<(), CallError> {
        if c.kill_first {
            let stop = StopContainer { uid: c.uid.clone(), container: c.id.clone(), grace_s: 2 };
            self.tools.crew.call(stop).await?;
        }
        if !c.log_path.is_empty() {
            let (fs, path) = (self.tools.deps.fs.clone(), c.log_path.clone());
            let removed = self.on_host(move || remove_log_files(&*fs, Path::new(&path))).await;
            if let Err(e) = removed {
                tracing::warn!(container = %c.id, error = %e, "log files are not removed");
            }
        }
        self.tools.crew.call(RemoveContainer { uid: c.uid.clone(), container: c.id.clone() }).await
    }

    async fn remove_logs(&self, in_runtime: &BTreeSet<PodUid>) {
        let workers = self.tools.workers.snapshot();
        let (fs, config) = (self.tools.deps.fs.clone(), self.tools.config.clone());
        let desired = self.desired.clone();
        let in_runtime = in_runtime.clone();
        let view = self.tools.observed.clone();
        let work = move || {
            let gone = |uid: &PodUid| !in_runtime.contains(uid) && content_removable(uid, &workers, &desired);
            remove_pod_log_dirs(&*fs, &config.pod_logs_dir, gone)?;
            let alive: BTreeSet<_> = view
                .snapshot()
                .into_values()
                .flat_map(|row| row.pod.containers.clone())
                .filter(|c| c.state != ContainerState::Exited)
                .map(|c| c.id)
                .collect();
            remove_dangling_links(&*fs, &config.container_logs_dir, |id| alive.contains(id))
        };
        if let Err(e) = self.on_host(work).await {
            tracing::warn!(error = %e, "log folders are not swept");
        }
    }

    async fn on_host<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> HostResult<T> + Send + 'static,
    ) -> Result<T, String> {
        match self.effects.attempt(Class::HostFiles, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(actor::chain(&e)),
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Removes the log folders of pods for which `gone` says yes.
fn remove_pod_log_dirs(fs: &dyn HostFs, root: &Path, gone: impl Fn(&PodUid) -> bool) -> HostResult<()> {
    let entries = match fs.list_dir(root) {
        Err(e) if e.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries.iter().filter(|e| e.is_dir) {
        if log_dir_uid(&entry.name).is_some_and(|uid| gone(&uid)) {
            fs.remove_tree(&root.join(&entry.name))?;
        }
    }
    Ok(())
}

/// Removes links whose log is gone; a link of a live container stays (its log may just be rotated).
fn remove_dangling_links(fs: &dyn HostFs, dir: &Path, alive: impl Fn(&model::ContainerId) -> bool) -> HostResult<()> {
    let entries = match fs.list_dir(dir) {
        Err(e) if e.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries.iter().filter(|e| e.name.ends_with(".log")) {
        let link = dir.join(&entry.name);
        let dangling = fs.read_link(&link).is_ok() && fs.stat(&link)?.is_none();
        let kept = symlink_container(&entry.name).is_some_and(|id| alive(&id));
        if dangling && !kept {
            fs.remove_file(&link)?;
        }
    }
    Ok(())
}
