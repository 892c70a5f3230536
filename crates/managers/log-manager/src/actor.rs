//! The actor: who is next, and how many at a time.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::board::BoardReader;
use contract::runtime::Observed;
use contract::{Crew, LogManager as Role};
use model::runtime::ContainerState;
use model::{ContainerId, PodUid};
use ports::host::HostFs;
use ports::log::Compress;
use ports::runtime::ContainerRuntime;

use crate::Serial;
use crate::effects::{self, Done};

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// `containerLogMaxSize` in bytes: logs of this size or more are rotated. `None` (a negative size): never.
    pub max_size: Option<u64>,
    /// `containerLogMaxFiles`: the log and its rotated files together, at least 2.
    pub max_files: u32,
    /// `containerLogMaxWorkers`: logs that are rotated at the same time, at least 1.
    pub max_workers: u32,
    /// `containerLogMonitorInterval`: time between two looks at all logs.
    pub interval: Duration,
    /// Names of rotated files tell the time in this zone (a kubelet's: `jiff::tz::TimeZone::system()`).
    pub time_zone: jiff::tz::TimeZone,
}

/// What LogManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Told to reopen logs.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// The files.
    pub fs: Arc<dyn HostFs>,
    /// Compression.
    pub compress: Arc<dyn Compress>,
    /// Order among the effects on one log.
    pub serial: Serial,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("log_manager::Deps")
    }
}

/// A log that needs something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    pub(crate) container: ContainerId,
    pub(crate) path: PathBuf,
}

/// The actor.
#[derive(Debug)]
pub struct LogManager {
    /// What runs, and where its log is.
    observed: BoardReader<PodUid, Observed>,
    config: Arc<Config>,
    deps: Arc<Deps>,
    /// A look at all logs is under way.
    looking: bool,
    queue: VecDeque<Log>,
    working: BTreeSet<ContainerId>,
}

impl Actor for LogManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.max_size.is_none() {
            tracing::info!("logs of containers are not rotated: containerLogMaxSize is negative");
            return;
        }
        self.look(ctx);
        ctx.every(self.config.interval, Self::look);
    }
}
supervised!(LogManager);

impl LogManager {
    /// A fresh instance; it looks at all logs when it starts.
    #[must_use]
    pub fn new(crew: &Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self { observed: crew.board(), config, deps, looking: false, queue: VecDeque::new(), working: BTreeSet::new() }
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

    /// Looks at the sizes of all logs, with one `stat` for each.
    fn look(&mut self, ctx: &mut Ctx<Self>) {
        // A file system that hangs must not gather threads.
        let Some(max_size) = self.config.max_size.filter(|_| !self.looking) else { return };
        let candidates = self.candidates();
        if candidates.is_empty() {
            return;
        }
        self.looking = true;
        let (fs, effects) = (self.deps.fs.clone(), ctx.effects());
        let work = async move {
            effects.hit("look").await;
            effects.blocking(Class::HostFiles, move || effects::in_need(&*fs, candidates, max_size)).await
        };
        ctx.run(work, |act: &mut Self, found, ctx| {
            act.looking = false;
            act.queue.extend(found);
            act.next(ctx);
        });
    }

    /// Gives work to those who have none.
    fn next(&mut self, ctx: &mut Ctx<Self>) {
        let workers = usize::try_from(self.config.max_workers.max(1)).unwrap_or(1);
        while self.working.len() < workers {
            let Some(log) = self.queue.pop_front() else { return };
            self.working.insert(log.container.clone());
            let work =
                effects::tend(self.config.clone(), self.deps.clone(), log.clone(), ctx.clock().clone(), ctx.effects());
            ctx.run(work, move |act: &mut Self, out, ctx| {
                act.working.remove(&log.container);
                let (container, path) = (&log.container, log.path.display());
                match out {
                    Ok(Done::Rotated(name)) => tracing::debug!(%container, %path, rotated = name, "log rotated"),
                    Ok(Done::Reopened) => tracing::info!(%container, %path, "log was missing and is opened anew"),
                    Ok(Done::Nothing) => {}
                    Err(e) => {
                        let error = actor::chain(&e);
                        tracing::warn!(%container, %path, error, "log is not rotated; next try with the next round");
                    }
                }
                act.next(ctx);
            });
        }
    }
}
