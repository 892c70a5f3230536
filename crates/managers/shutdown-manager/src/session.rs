//! What the actor has of logind: a delay that is long enough, the lock, and the news of shutdowns.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Ctx, Effects};
use contract::shutdown::Shutdown;
use futures::StreamExt as _;
use node_shutdown::{DROP_IN_NAME, drop_in, needed_delay};
use ports::logind::ShutdownNews;

use crate::actor::ShutdownManager;
use crate::deps::{Config, Deps, PAUSE};

/// Longest pause before logind is looked for again.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// logind reads its configuration in its own time: how often it is asked, and how long after the first time; doubled each time.
const LOOKS: u32 = 5;
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// Has logind grant the delay that all groups need.
async fn ask_for_delay(deps: &Deps, config: &Config, effects: &Effects) -> io::Result<()> {
    let needed = needed_delay(&config.groups);
    let mut granted = deps.logind.longest_delay().await?;
    if granted >= needed {
        return Ok(());
    }
    effects.hit("delay").await;
    let (fs, dir) = (deps.fs.clone(), config.drop_in_dir.clone());
    let write = move || {
        fs.create_dir(&dir, 0o755)?;
        fs.write_file(&dir.join(DROP_IN_NAME), drop_in(needed.as_secs()).as_bytes(), 0o644)
    };
    let written = effects.blocking(Class::HostFiles, write).await;
    written.map_err(|e| io::Error::other(actor::chain(&e)))?;
    deps.logind.reload().await?;
    let mut pause = FIRST_LOOK;
    for look in 1..=LOOKS {
        granted = deps.logind.longest_delay().await?;
        if granted >= needed {
            return Ok(());
        }
        if look < LOOKS {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
    let text = format!("logind grants a delay of {} s, {} s are needed", granted.as_secs_f64(), needed.as_secs());
    Err(io::Error::other(text))
}

impl ShutdownManager {
    /// Begins to listen.
    pub(crate) fn open(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move {
            effects.hit("open").await;
            ask_for_delay(&deps, &config, &effects).await?;
            deps.logind.follow().await
        };
        ctx.run(work, |act: &mut Self, opened: io::Result<ShutdownNews>, ctx| match opened {
            Ok(news) => Self::listen(news, ctx),
            Err(error) => act.open_later(&error, ctx),
        });
    }

    fn open_later(&mut self, error: &io::Error, ctx: &mut Ctx<Self>) {
        if self.pause == PAUSE {
            tracing::error!(%error, "a shutdown of the machine would not be held back for its pods");
        } else {
            tracing::debug!(%error, "a shutdown of the machine still would not be held back for its pods");
        }
        self.publish(|now| now.error = Some(error.to_string()));
        ctx.after(self.pause, Self::open);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn listen(mut news: ShutdownNews, ctx: &mut Ctx<Self>) {
        let effects = ctx.effects();
        let work = async move {
            let next = news.next().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
            if next.is_ok() {
                effects.hit("news").await;
            }
            (next, news)
        };
        ctx.run(work, |act: &mut Self, (next, news), ctx| match next {
            Ok(true) => {
                act.pause = PAUSE;
                act.begin(ctx);
                Self::listen(news, ctx);
            }
            Ok(false) => {
                act.cancel(ctx);
                act.take_lock(news, ctx);
            }
            Err(error) => act.open_later(&error, ctx),
        });
    }

    /// Takes a lock, in place of the one that is held if any, and then listens on.
    fn take_lock(&mut self, news: ShutdownNews, ctx: &mut Ctx<Self>) {
        let (deps, effects) = (Arc::clone(&self.deps), ctx.effects());
        let work = async move {
            effects.hit("lock").await;
            let taken = deps.logind.hold_back().await.map(|lock| deps.hold.keep(lock));
            (taken, news)
        };
        ctx.run(work, |act: &mut Self, (taken, news), ctx| match taken {
            Ok(()) => {
                if act.pause != PAUSE {
                    tracing::info!("a shutdown of the machine is held back for its pods");
                }
                act.pause = PAUSE;
                act.publish(|now| now.error = None);
                Self::listen(news, ctx);
            }
            Err(error) => act.open_later(&error, ctx),
        });
    }

    /// Publishes the board with a change.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Shutdown)) {
        let before = self.board.get();
        let mut now = (*before).clone();
        change(&mut now);
        if now != *before {
            self.board.publish(now);
        }
    }
}
