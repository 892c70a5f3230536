//! The actor: which log is next, and how many are worked on at a time.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use actor::{Actor, Class, Ctx, supervised};
use contract::board::BoardReader;
use contract::runtime::Observed;
use contract::{Crew, LogManager as Role};
use model::runtime::ContainerState;
use model::{ContainerId, PodUid};

use crate::deps::{Config, Deps};
use crate::rotate::{self, Log, Outcome};

/// The actor.
#[derive(Debug)]
pub struct LogManager {
    /// What runs, and where its log is.
    observed: BoardReader<PodUid, Observed>,
    config: Arc<Config>,
    deps: Arc<Deps>,
    /// The sizes of all logs are being read.
    scanning: bool,
    /// Logs that wait for a worker.
    queue: VecDeque<Log>,
    /// Logs that a worker has.
    working: BTreeSet<ContainerId>,
}

impl Actor for LogManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.max_size.is_none() {
            tracing::info!("logs of containers are not rotated: containerLogMaxSize is negative");
            return;
        }
        self.scan(ctx);
        ctx.every(self.config.interval, Self::scan);
    }
}
supervised!(LogManager);

impl LogManager {
    /// A fresh instance; it scans all logs when it starts.
    #[must_use]
    pub fn new(crew: &Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self { observed: crew.board(), config, deps, scanning: false, queue: VecDeque::new(), working: BTreeSet::new() }
    }

    /// Logs of running containers that nobody works on yet.
    fn candidates(&self) -> Vec<Log> {
        let known = |id: &ContainerId| self.working.contains(id) || self.queue.iter().any(|log| log.container == *id);
        let rows = self.observed.snapshot();
        let containers = rows.values().flat_map(|row| &row.pod.containers);
        let running = containers.filter(|c| c.state == ContainerState::Running && !c.log_path.is_empty());
        let free = running.filter(|c| !known(&c.id));
        free.map(|c| Log { container: c.id.clone(), path: PathBuf::from(&c.log_path) }).collect()
    }

    /// Finds the logs that need something, with one `stat` for each.
    fn scan(&mut self, ctx: &mut Ctx<Self>) {
        // One scan at a time: a file system that hangs must not gather threads.
        let Some(max_size) = self.config.max_size.filter(|_| !self.scanning) else { return };
        let candidates = self.candidates();
        if candidates.is_empty() {
            return;
        }
        self.scanning = true;
        let (fs, effects) = (self.deps.fs.clone(), ctx.effects());
        let work = async move {
            effects.hit("scan").await;
            effects.blocking(Class::HostFiles, move || rotate::in_need(&*fs, candidates, max_size)).await
        };
        ctx.run(work, |act: &mut Self, in_need, ctx| {
            act.scanning = false;
            act.queue.extend(in_need);
            act.start_workers(ctx);
        });
    }

    /// Starts work on waiting logs while there is a free worker.
    fn start_workers(&mut self, ctx: &mut Ctx<Self>) {
        let workers = usize::try_from(self.config.max_workers.max(1)).unwrap_or(1);
        while self.working.len() < workers {
            let Some(log) = self.queue.pop_front() else { return };
            self.working.insert(log.container.clone());
            let work = rotate::maintain(
                self.config.clone(),
                self.deps.clone(),
                log.clone(),
                ctx.clock().clone(),
                ctx.effects(),
            );
            ctx.run(work, move |act: &mut Self, out, ctx| {
                act.working.remove(&log.container);
                let (container, path) = (&log.container, log.path.display());
                match out {
                    Ok(Outcome::Rotated(name)) => tracing::debug!(%container, %path, rotated = name, "log rotated"),
                    Ok(Outcome::Reopened) => tracing::info!(%container, %path, "log was missing and is opened anew"),
                    Ok(Outcome::Nothing) => {}
                    Err(e) => {
                        let error = actor::chain(&e);
                        tracing::warn!(%container, %path, error, "log is not rotated; next try with the next round");
                    }
                }
                act.start_workers(ctx);
            });
        }
    }
}
