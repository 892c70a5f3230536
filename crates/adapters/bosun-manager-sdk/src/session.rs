//! One life of the manager: from the node that attaches until it is gone.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel, Spec};
use contract::{Answers, Crew, Role, Wiring};
use futures::FutureExt;
use seam::v1::{Begin, Call, FromManager, Ping, Pong, Ready, ToManager, from_manager, to_manager};
use seam::{Boards, Calls, Desk, Out};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::Streaming;
use trace::Context;

use crate::asks::Forward;
use crate::journal::RemoteJournal;
use crate::outside::Outside;
use crate::repeats::Repeats;
use crate::service::Attached;

/// Builds the manager, generation after generation.
pub(crate) type Factory<R, A> = Box<dyn FnMut(Crew<R>) -> A + Send>;

/// Makes what builds it, for each node that comes.
pub(crate) type ForEach<R, A> = Rc<dyn Fn(&Outside) -> Factory<R, A>>;

/// Messages that may wait at the manager, as at one in the node.
const MAILBOX: usize = 1024;

/// What a life is made of. Its end ends the manager.
struct Life<R: Role, A: Answers<R>> {
    out: Arc<Out<FromManager>>,
    calls: Arc<Calls>,
    journal: Arc<RemoteJournal>,
    mirrors: Boards,
    desk: Desk,
    repeats: Repeats,
    tasks: JoinSet<()>,
    manager: ActorRef<A>,
    role: std::marker::PhantomData<R>,
}

/// Lives for as long as the node does.
pub(crate) async fn live<R: Role, A: Answers<R>>(kernel: Kernel, for_each: ForEach<R, A>, node: Attached) {
    let Attached { mut incoming, frames } = node;
    let wiring = Wiring::default();
    let mut mirrors = Boards::mirrors_of::<R>(&wiring);
    let hash = contract::seam::hash(&R::DECLARATION);
    let Some(begin) = prepare(&mut incoming, &frames, &mut mirrors, &hash).await else { return };
    tracing::info!(role = R::NAME, generation = begin.generation, "a node is here");
    let mut feeds = Boards::own_feeds_of::<R>(&wiring);
    // The node knows the rows that it has just sent.
    feeds.iter_mut().for_each(|(_, feed)| drop(feed.next()));
    let (out, calls) = (Arc::new(Out::over(frames, feeds)), Arc::new(Calls::new(begin.generation)));
    Forward { out: out.clone(), calls: calls.clone() }.connect::<R>(&wiring);
    let journal = Arc::new(RemoteJournal::default());
    let mut factory = for_each(&Outside { journal: journal.clone(), kernel: kernel.clone() });
    let (mut first, at) = (None, wiring.clone());
    let spec = Spec::new(R::DECLARATION.actor).mailbox(MAILBOX);
    let manager = kernel.spawn(spec, move |_generation| {
        let first: &Crew<R> = first.get_or_insert_with(|| at.crew());
        factory(first.succeed())
    });
    wiring.connect::<R, A>(&manager);
    let mut tasks = JoinSet::new();
    tasks.spawn(journal.clone().carry(out.clone()));
    let desk = Desk::answers_of::<R>(&wiring);
    let (repeats, role) = (Repeats::default(), std::marker::PhantomData);
    let mut life: Life<R, A> = Life { out, calls, journal, mirrors, desk, repeats, tasks, manager, role };
    if life.out.say(from_manager::What::Ready(Ready {})).await.is_err() {
        return;
    }
    let following = life.out.clone();
    life.tasks.spawn(async move { following.follow().await });
    loop {
        match incoming.message().await {
            Ok(Some(frame)) => life.hear(frame),
            Ok(None) => break,
            Err(e) => {
                tracing::warn!(error = e.message(), "the connection to the node broke");
                break;
            }
        }
    }
    tracing::info!(role = R::NAME, "the node is gone");
}

/// What comes before the manager is built: who the node is, and all rows.
async fn prepare(
    incoming: &mut Streaming<ToManager>,
    frames: &mpsc::Sender<FromManager>,
    mirrors: &mut Boards,
    hash: &str,
) -> Option<Begin> {
    let mut begun = None;
    loop {
        match incoming.message().await.ok()??.what? {
            to_manager::What::Begin(begin) if begin.hash == hash => begun = Some(begin),
            to_manager::What::Begin(begin) => {
                tracing::error!(theirs = begin.hash, ours = hash, "a node with another contract is turned away");
                return None;
            }
            to_manager::What::Rows(rows) => mirror(mirrors, rows),
            to_manager::What::Start(_) => return begun,
            // A node that looks whether this process would do.
            to_manager::What::Ping(ping) => frames.send(pong(&ping)).await.ok()?,
            _ => {}
        }
    }
}

fn pong(to: &Ping) -> FromManager {
    from_manager::What::Pong(Pong { number: to.number }).into()
}

fn mirror(mirrors: &mut Boards, rows: seam::v1::Rows) {
    let board = rows.board.clone();
    for why in mirrors.take(rows, &|_| true).refused {
        tracing::error!(board, %why, "a row of the node is left out");
    }
}

impl<R: Role, A: Answers<R>> Life<R, A> {
    fn hear(&mut self, frame: ToManager) {
        while self.tasks.try_join_next().is_some() {}
        match frame.what {
            Some(to_manager::What::Rows(rows)) => mirror(&mut self.mirrors, rows),
            Some(to_manager::What::Call(call)) => self.call(call),
            Some(to_manager::What::Answer(answer)) => {
                let _late = self.calls.answered(answer);
            }
            Some(to_manager::What::Kept(kept)) => self.journal.kept(kept),
            Some(to_manager::What::Ping(ping)) => {
                let _too_much_waits = self.out.say_now(pong(&ping));
            }
            Some(to_manager::What::Begin(_) | to_manager::What::Start(_)) | None => {}
        }
    }

    fn call(&mut self, call: Call) {
        let Call { id, message, body, within_ms, key, traceparent } = call;
        if id == 0 {
            if let Err(why) = self.desk.tell(&message, &body) {
                tracing::warn!(message, why = why.as_str_name(), "a message of the node is lost");
            }
            return;
        }
        let desk = &self.desk;
        let ask = || {
            let asked = desk.ask(&message, &body, Duration::from_millis(within_ms));
            trace::within(Context::parse(&traceparent), asked).boxed()
        };
        let answering = self.repeats.once(key, ask);
        let out = self.out.clone();
        self.tasks.spawn(async move {
            let _it_is_gone = out.answer(id, answering.await).await;
        });
    }
}

impl<R: Role, A: Answers<R>> Drop for Life<R, A> {
    fn drop(&mut self) {
        self.calls.end();
        self.journal.end();
        self.manager.stop();
    }
}
