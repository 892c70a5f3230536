//! The actor: reads the log for as long as it can be read, tells what it finds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::{Crew, OomWatcher as Role};
use futures::StreamExt as _;
use model::event::{EventObject, EventType, NodeEvent};
use ports::journal::Journal;
use ports::kernel_log::{KernelLines, KernelLog};

use crate::kill::{Kill, Reader};
use crate::told;

/// Pause before a log that cannot be read is opened again; doubled up to the ceiling.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// What OomWatcher works with.
#[derive(Clone)]
pub struct Deps {
    /// What the kernel says.
    pub log: Arc<dyn KernelLog>,
    /// Keeps how far it was told.
    pub journal: Arc<dyn Journal>,
    /// This boot of the machine; lines are numbered anew with each.
    pub boot_id: String,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("oom_watcher::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct OomWatcher {
    crew: Crew<Role>,
    deps: Arc<Deps>,
    pause: Duration,
}

impl Actor for OomWatcher {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.open(ctx);
    }
}
supervised!(OomWatcher);

/// The log, open.
struct Lines {
    lines: KernelLines,
    reader: Reader,
    /// Told by an earlier generation or daemon: up to this line.
    told: Option<u64>,
}

impl Lines {
    /// The next kill that was not told yet, with the number of its last line.
    async fn next_kill(&mut self) -> io::Result<(u64, Kill)> {
        loop {
            let line = self.lines.next().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
            let Some(kill) = self.reader.line(&line.text) else { continue };
            if self.told.is_none_or(|told| line.number > told) {
                return Ok((line.number, kill));
            }
        }
    }
}

impl OomWatcher {
    /// A fresh instance; it opens the log when it starts.
    #[must_use]
    pub fn new(crew: Crew<Role>, deps: Arc<Deps>) -> Self {
        Self { crew, deps, pause: PAUSE }
    }

    fn open(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, effects) = (self.deps.clone(), ctx.effects());
        let work = async move {
            effects.hit("open").await;
            let of = deps.clone();
            let told = effects.blocking(Class::Journal, move || told::load(&*of.journal, &of.boot_id)).await;
            let told = told.unwrap_or_else(|error| {
                tracing::warn!(error = actor::chain(&error), "what was told of the kernel's log is told again");
                None
            });
            Ok(Lines { lines: deps.log.open()?, reader: Reader::default(), told })
        };
        ctx.run(work, |act: &mut Self, opened: io::Result<Lines>, ctx| match opened {
            Ok(lines) => Self::await_kill(lines, ctx),
            Err(error) => act.open_later(&error, ctx),
        });
    }

    fn open_later(&mut self, error: &io::Error, ctx: &mut Ctx<Self>) {
        if self.pause == PAUSE {
            tracing::warn!(%error, "the kernel's log cannot be read: nobody is told when the machine runs out of memory");
        } else {
            tracing::debug!(%error, "the kernel's log still cannot be read");
        }
        ctx.after(self.pause, Self::open);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn await_kill(mut lines: Lines, ctx: &mut Ctx<Self>) {
        let effects = ctx.effects();
        let work = async move {
            let next = lines.next_kill().await;
            if next.is_ok() {
                effects.hit("kill").await;
            }
            (next, lines)
        };
        ctx.run(work, |act: &mut Self, (next, lines), ctx| match next {
            Ok((number, kill)) => {
                act.pause = PAUSE;
                act.tell(number, &kill);
                Self::await_kill(lines, ctx);
            }
            Err(error) => act.open_later(&error, ctx),
        });
    }

    fn tell(&self, number: u64, kill: &Kill) {
        tracing::info!(
            process = kill.process,
            pid = kill.pid,
            limit_of = kill.limit_of,
            "the kernel killed a process for lack of memory"
        );
        if kill.is_of_the_machine() {
            let (kind, reason) = (EventType::Warning, "SystemOOM".into());
            self.crew.emit(NodeEvent { kind, reason, message: kill.message(), object: EventObject::Node });
        }
        told::save(&*self.deps.journal, &self.deps.boot_id, number);
    }
}
