//! The way to a manager in another process, as a stand-in takes it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use actor::Ctx;
use contract::seam::{Far, Forwarded, StandIn};
use contract::{Crew, Role};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, abortable};
use model::PodUid;
use model::unix_address::UnixAddress;
use ports::journal::Journal;
use seam::v1::{Begin, FromManager, Start, ToManager, to_manager};
use seam::{Boards, Calls, Feeds, Out};
use tokio::time::{Instant, timeout_at};
use tonic::Streaming;

use crate::connect::{self, ConnectError, Connection};
use crate::judge::back_off;
use crate::link::{Link, Session};
use crate::live::{Live, World};

/// What callers get while the other process is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenAway {
    /// They wait for it, as long as their message may take.
    Hold,
    /// What they get of an actor that crashes, at once.
    Fail,
}

/// How often it is asked for a sign of life.
const TICK: Duration = Duration::from_secs(2);
/// How long it may take over what it is told before it serves.
const REMINDED: Duration = Duration::from_secs(5);
/// A caller's own deadline comes before that of the call for it.
const SLACK: Duration = Duration::from_secs(1);

/// Which manager is reached, and with what. Clone it into the factory: the link is the same in every generation.
#[derive(Clone)]
pub struct To {
    /// Where it listens.
    pub address: UnixAddress,
    /// What callers get while it is away.
    pub when_away: WhenAway,
    /// Whether it is there.
    pub link: Link,
    /// Whether a pod is on this node: rows of others are refused.
    pub is_here: Arc<dyn Fn(&PodUid) -> bool + Send + Sync>,
    /// The journal; `None`: there is none for it.
    pub journal: Option<Arc<dyn Journal>>,
}

impl std::fmt::Debug for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "To({}, {:?})", self.address, self.when_away)
    }
}

/// The way to one manager.
pub struct Remote<R: Role> {
    to: To,
    hash: String,
    /// The right to post of the life that is.
    crew: Crew<R>,
    live: Option<Live>,
    attempts: u32,
    born: Instant,
}

type This<R> = StandIn<R, Remote<R>>;

impl<R: Role> std::fmt::Debug for Remote<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote<{}>({:?})", R::NAME, self.to)
    }
}

impl<R: Role> Remote<R> {
    /// An actor that stands in for the manager there.
    #[must_use]
    pub fn stand_in(crew: Crew<R>, to: To) -> StandIn<R, Self> {
        StandIn::new(Remote {
            to,
            hash: contract::seam::hash(&R::DECLARATION),
            crew,
            live: None,
            attempts: 0,
            born: Instant::now(),
        })
    }

    /// Connects. Each life has a right to post of its own: what is left of the one before posts nothing.
    fn attach(this: &mut This<R>, ctx: &mut Ctx<This<R>>) {
        let far = &mut this.far;
        far.crew = far.crew.succeed();
        let (own, others) = Boards::feeds_of(&far.crew);
        let (out, frames) = Out::new(others);
        let (address, hash, effects) = (far.to.address.clone(), far.hash.clone(), ctx.effects());
        let opened = async move { connect::open(&address, (R::NAME, &hash), frames, &effects).await };
        ctx.run(opened, move |this, opened: Result<Connection, ConnectError>, ctx| match opened {
            Ok(connection) => Self::attached(this, connection, (out, own), ctx),
            Err(e) => Self::lost(this, e.to_string(), ctx),
        });
    }

    fn attached(
        this: &mut This<R>,
        connection: Connection,
        (out, own): (Out<ToManager>, Feeds),
        ctx: &mut Ctx<This<R>>,
    ) {
        let Connection { client, description, incoming } = connection;
        let generation = u64::try_from(ctx.clock().unix_nanos()).unwrap_or_default();
        let calls = Arc::new(Calls::new(generation));
        let session = Arc::new(Session { generation, client: Some(client), out, calls, description });
        let To { link, is_here, journal, .. } = this.far.to.clone();
        let world = World { link, is_here, journal, effects: ctx.effects() };
        let now = this.far.born.elapsed();
        let mut live = Live::new(generation, session.clone(), &this.far.crew, world, now);
        let begin = Begin { generation, hash: this.far.hash.clone() };
        let _there_is_room = session.out.say_now(to_manager::What::Begin(begin).into());
        live.spawn(async move {
            let begun = async {
                session.out.say_once(own).await?;
                session.out.say(to_manager::What::Start(Start {})).await
            };
            if begun.await.is_ok() {
                session.out.follow().await;
            }
        });
        this.far.live = Some(live);
        Self::listen(this, generation, incoming, ctx);
    }

    /// Waits for the next frame.
    fn listen(this: &mut This<R>, number: u64, mut incoming: Streaming<FromManager>, ctx: &mut Ctx<This<R>>) {
        let Some(live) = this.far.live.as_mut().filter(|l| l.number == number) else { return };
        let next = async move { (incoming.message().await, incoming) };
        let (next, handle) = abortable(next);
        live.reader = Some(handle);
        ctx.run(next, move |this, next, ctx| {
            let Ok((frame, incoming)) = next else { return };
            let now = this.far.born.elapsed();
            let Some(live) = this.far.live.as_mut().filter(|l| l.number == number) else { return };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Self::lost(this, "it ended the connection".to_owned(), ctx),
                Err(e) => return Self::lost(this, format!("the connection broke: {}", e.message()), ctx),
            };
            if live.hear(frame, now) {
                Self::remind(this, number, ctx);
            }
            let Some(live) = this.far.live.as_mut() else { return };
            let rest = live.rate.spend(now);
            if rest.is_zero() {
                return Self::listen(this, number, incoming, ctx);
            }
            ctx.after(rest, move |this, ctx| Self::listen(this, number, incoming, ctx));
        });
    }

    /// Tells it what it cannot know, before anybody else says anything to it; then it serves.
    fn remind(this: &mut This<R>, number: u64, ctx: &mut Ctx<This<R>>) {
        let Some(session) = this.far.live.as_ref().map(|live| live.session.clone()) else { return };
        let reminders = this.far.crew.remembered();
        let answered = async move {
            let all = reminders.into_iter().map(|told| {
                let (session, within) = (&session, told.within.min(REMINDED));
                async move { session.calls.call(&session.out, told.message, told.body, within, ()).await.is_ok() }
            });
            futures::future::join_all(all).await
        };
        ctx.run(answered, move |this, answered: Vec<bool>, _| {
            let Some(live) = this.far.live.as_ref().filter(|l| l.number == number) else { return };
            let session = live.session.clone();
            this.far.attempts = 0;
            let unanswered = answered.iter().filter(|well| !**well).count();
            tracing::info!(role = R::NAME, at = %this.far.to.address, program = session.description.program,
                reminders = answered.len(), unanswered, "a manager in another process serves");
            this.far.to.link.up(session, (answered.len(), unanswered));
        });
    }

    /// It is away: whoever waits for an answer hears what it hears of a crash, and it is looked for again.
    fn lost(this: &mut This<R>, why: String, ctx: &mut Ctx<This<R>>) {
        let far = &mut this.far;
        far.live = None;
        let wait = back_off(far.attempts);
        far.attempts = far.attempts.saturating_add(1);
        if far.to.link.away(why.clone()) {
            tracing::warn!(role = R::NAME, at = %far.to.address, why, "a manager in another process is away");
        }
        ctx.after(wait, Self::attach);
    }
}

impl<R: Role> Far<R> for Remote<R> {
    fn started(stand_in: &mut This<R>, ctx: &mut Ctx<This<R>>) {
        Self::attach(stand_in, ctx);
        ctx.every(TICK, |this, ctx| {
            let now = this.far.born.elapsed();
            let silent = this.far.live.as_mut().and_then(|live| live.tick(now).err());
            if let Some(why) = silent {
                Self::lost(this, why.to_owned(), ctx);
            }
        });
    }

    fn forward(&mut self, forwarded: Forwarded) -> LocalBoxFuture<'static, Option<Vec<u8>>> {
        let Forwarded { message, body, within } = forwarded;
        let (link, waits) = (self.to.link.clone(), self.to.when_away == WhenAway::Hold);
        let now = Instant::now();
        let until = now.checked_add(within + SLACK).unwrap_or(now + Duration::from_secs(365 * 86_400));
        async move {
            let (session, turn) = timeout_at(until, link.session(waits)).await.ok()??;
            let left = until.saturating_duration_since(Instant::now());
            let answer = session.calls.call(&session.out, message, body, left, turn).await;
            if let Err(e) = &answer {
                tracing::debug!(message, error = %e, "a manager in another process gave no answer");
            }
            answer.ok()
        }
        .boxed_local()
    }

    fn refused(&self) -> Arc<AtomicU64> {
        self.to.link.refused_answers()
    }
}

impl<R: Role> Drop for Remote<R> {
    fn drop(&mut self) {
        // Of a generation that crashed, or of a stand-in whose place another one has taken.
        if self.live.take().is_some() {
            self.to.link.away("nobody stands in for it".to_owned());
        }
    }
}
