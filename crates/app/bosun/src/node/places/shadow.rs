//! A candidate that is shown what is asked of a role: it answers and posts beside the one in force, and only what differs comes of it.
//!
//! It is served as a role of its own in a wiring of its own, whose boards follow those of the node. What it asks there reaches
//! nobody, its rows stay there, and what it writes to the journal it alone reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actor::{ActorRef, AskError, Policy, Spec, Strategy};
use contract::seam::StandIn;
use contract::{Answered, Answers, Compare, Role, Seat, Wiring};
use futures::future::{BoxFuture, select_all};
use manager_probation::differences;
use model::unix_address::UnixAddress;
use node_config::RemoteManager;
use remote_manager::{Life, Link, Remote, To, WhenAway};
use seam::v1::{Row, Rows};
use seam::{Boards, Feeds};
use serde_json::Value;
use server::local::{DifferenceLine, ShadowLine};
use tokio::time::{Instant, sleep, timeout};

use super::stand_in::pods_of;
use super::standing::{Shared, locked};
use crate::node::Node;

mod overlay;

use overlay::Overlay;

/// How often rows are compared. Those that differ twice in a row differ.
const LOOKED: Duration = Duration::from_secs(1);
/// Differences that are told.
const TOLD: usize = 100;
/// Places that are told of one answer or row.
const OF_ONE: usize = 8;

/// A candidate that is shown something, until this is dropped.
pub(super) struct Shown {
    address: UnixAddress,
    ending: Arc<dyn Fn(&str)>,
    running: Arc<AtomicBool>,
}

impl Shown {
    pub(super) fn is_of(&self, remote: &RemoteManager) -> bool {
        self.address == remote.remote && self.running.load(Ordering::Relaxed)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        (self.ending)("the place was given to another one, or another candidate came");
    }
}

/// Shows it for as long as its probation would be.
pub(super) fn show<R: Role>(node: &Node, standing: &Shared, remote: &RemoteManager) -> Shown
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    let there = Wiring::default();
    let clock = node.0.kernel.clock();
    let seat = node.wiring().seat::<R>(clock);
    let mirror = Mirror::of::<R>(node.wiring(), &there);
    let (link, candidate) = candidate::<R>(node, &there, remote);
    locked(standing).shadow =
        Some(ShadowLine { candidate: remote.remote.to_string(), running: true, ..ShadowLine::default() });
    let notes = Arc::new(Notes { standing: standing.clone(), told: std::sync::Mutex::default() });
    node.wiring().show::<R>(&there, clock, notes.clone());
    let running = Arc::new(AtomicBool::new(true));
    let ending = ending(running.clone(), standing.clone(), seat, candidate);
    let comparing = Comparing {
        ours: Boards::own_feeds_of::<R>(node.wiring()),
        theirs: Boards::own_feeds_of::<R>(&there),
        rows: [BTreeMap::new(), BTreeMap::new()],
        differed: BTreeSet::new(),
    };
    let (ends, is_on, lasts) = (ending.clone(), running.clone(), remote.probation);
    drop(tokio::task::spawn_local(async move {
        let why = beside(mirror, comparing, notes, link, is_on, lasts).await;
        ends(&why);
    }));
    Shown { address: remote.remote.clone(), ending, running }
}

/// What ends it, once.
fn ending<A: actor::Managed>(
    running: Arc<AtomicBool>,
    standing: Shared,
    seat: Arc<Seat>,
    candidate: ActorRef<A>,
) -> Arc<dyn Fn(&str)> {
    Arc::new(move |why: &str| {
        if running.swap(false, Ordering::Relaxed) {
            seat.show_nobody();
            candidate.stop();
            if let Some(shadow) = &mut locked(&standing).shadow {
                shadow.running = false;
                shadow.ended = Some(why.to_owned());
            }
        }
    })
}

/// Connects the candidate as the role of the other wiring.
fn candidate<R: Role>(node: &Node, there: &Wiring, remote: &RemoteManager) -> (Link, ActorRef<StandIn<R, Remote<R>>>)
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    let (link, crew) = (Link::default(), there.crew::<R>());
    let to = To {
        address: remote.remote.clone(),
        when_away: WhenAway::Hold,
        link: link.clone(),
        is_here: pods_of(node.wiring()),
        journal: Some(Arc::new(Overlay::over(node.0.ports.journal.clone()))),
    };
    let kernel = &node.0.kernel;
    let group = kernel.group("shadows", Policy { strategy: Strategy::Isolated, ..Policy::default() });
    let spec = Spec::new(format!("{}-shadow", R::DECLARATION.actor)).group(&group);
    let actor = kernel.spawn(spec, move |_generation| Remote::stand_in(crew.succeed(), to.clone()));
    there.connect::<R, _>(&actor);
    (link, actor)
}

/// Runs until the time is over, or the candidate is away; answers why it ended.
async fn beside(
    mut mirror: Mirror,
    mut comparing: Comparing,
    notes: Arc<Notes>,
    link: Link,
    is_on: Arc<AtomicBool>,
    lasts: Duration,
) -> String {
    let until = Instant::now() + lasts;
    while is_on.load(Ordering::Relaxed) && Instant::now() < until {
        let _a_look_is_due = timeout(LOOKED, mirror.follow()).await;
        comparing.look(&notes);
        let life = link.life().borrow().clone();
        if let (Life::Away(why), true) = (life, link.status().lives > 0) {
            return format!("it is away: {why}");
        }
    }
    match link.status().lives {
        0 => "it never began to serve".to_owned(),
        _ => "its time is over".to_owned(),
    }
}

/// Boards of the node that the role reads, followed in the other wiring.
struct Mirror {
    from: Feeds,
    to: Boards,
}

impl Mirror {
    /// The rows that the role itself has posted are copied once, before it begins there.
    fn of<R: Role>(node: &Wiring, there: &Wiring) -> Self {
        let (mut own, from) = Boards::shown_to::<R>(node);
        let mut mirror = Mirror { from, to: Boards::mirrors_of::<R>(there) };
        for (board, feed) in &mut own {
            copy(&mut mirror.to, board, feed.next());
        }
        mirror.catch_up();
        mirror
    }

    fn catch_up(&mut self) {
        for (board, feed) in &mut self.from {
            copy(&mut self.to, board, feed.next());
        }
    }

    /// Never ends.
    async fn follow(&mut self) {
        loop {
            self.catch_up();
            if self.from.is_empty() {
                return std::future::pending().await;
            }
            let mut changes: Vec<_> = self.from.iter().map(|(_, feed)| feed.changes()).collect();
            self.catch_up();
            let any = select_all(changes.iter_mut().map(|c| Box::pin(c.changed()))).await;
            drop(any);
            // Many at once are copied together.
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn copy(to: &mut Boards, board: &str, changes: Option<contract::seam::Changes>) {
    let Some(changes) = changes else { return };
    let rows = changes.rows.into_iter().map(|(key, value)| Row { key, value }).collect();
    let rows = Rows { board: board.to_owned(), number: changes.number, whole: changes.whole, more: false, rows };
    for why in to.take(rows, &|_| true).refused {
        tracing::error!(board, %why, "a row is not shown to a candidate");
    }
}

/// What differs, told once for each place.
struct Notes {
    standing: Shared,
    told: std::sync::Mutex<BTreeMap<(String, String), usize>>,
}

impl Notes {
    /// One answer or row of `of`, about `whom`.
    fn differ(&self, of: &str, whom: &str, ours: Option<&Value>, theirs: Option<&Value>) {
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut standing = locked(&self.standing);
        let Some(shadow) = &mut standing.shadow else { return };
        for d in differences(ours, theirs, OF_ONE) {
            let place = (of.to_owned(), d.at.clone());
            if let Some(index) = told.get(&place) {
                shadow.differences[*index].count += 1;
            } else if told.len() < TOLD {
                told.insert(place, shadow.differences.len());
                let text = |t: Option<String>| t.unwrap_or_else(|| "-".to_owned());
                let (ours, theirs) = (text(d.ours), text(d.theirs));
                shadow.differences.push(DifferenceLine {
                    of: format!("{of} of {whom}"),
                    at: d.at,
                    ours,
                    theirs,
                    count: 1,
                });
            }
        }
    }
}

/// An answer, or why there is none, as a document.
fn document(answer: &Result<String, AskError>) -> Value {
    match answer {
        Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
        Err(e) => Value::from(e.to_string()),
    }
}

impl Compare for Notes {
    fn run(&self, work: BoxFuture<'static, ()>) {
        drop(tokio::spawn(work));
    }

    fn answered(&self, answered: Answered) {
        let Answered { message, subject, ours, theirs } = answered;
        let is_same = ours == theirs;
        if let Some(shadow) = &mut locked(&self.standing).shadow {
            shadow.compared += 1;
            shadow.same += u64::from(is_same);
        }
        if !is_same {
            let whom = subject.as_deref().unwrap_or("the node");
            self.differ(message, whom, Some(&document(&ours)), Some(&document(&theirs)));
        }
    }

    fn passed_over(&self, _: &'static str) {
        if let Some(shadow) = &mut locked(&self.standing).shadow {
            shadow.passed_over += 1;
        }
    }
}

/// A row by its board and key.
type Place = (&'static str, String);

/// Rows of both.
struct Comparing {
    ours: Feeds,
    theirs: Feeds,
    rows: [BTreeMap<Place, Value>; 2],
    /// Those that differed at the last look: they had time to become the same.
    differed: BTreeSet<Place>,
}

fn update(feeds: &mut Feeds, rows: &mut BTreeMap<Place, Value>) {
    for (board, feed) in feeds {
        let Some(changes) = feed.next() else { continue };
        if changes.whole {
            rows.retain(|(of, _), _| of != board);
        }
        for (key, value) in changes.rows {
            let place = (*board, String::from_utf8_lossy(&key).into_owned());
            match value.and_then(|text| serde_json::from_slice(&text).ok()) {
                Some(row) => drop(rows.insert(place, row)),
                None => drop(rows.remove(&place)),
            }
        }
    }
}

impl Comparing {
    fn look(&mut self, notes: &Notes) {
        let [ours, theirs] = &mut self.rows;
        update(&mut self.ours, ours);
        update(&mut self.theirs, theirs);
        let all: BTreeSet<&Place> = ours.keys().chain(theirs.keys()).collect();
        let differ: BTreeSet<Place> =
            all.iter().filter(|p| ours.get(**p) != theirs.get(**p)).map(|p| Place::clone(p)).collect();
        if let Some(shadow) = &mut locked(&notes.standing).shadow {
            shadow.rows = ((all.len() - differ.len()) as u64, all.len() as u64);
        }
        for place in differ.intersection(&self.differed) {
            notes.differ(place.0, place.1.trim_matches('"'), ours.get(place), theirs.get(place));
        }
        self.differed = differ;
    }
}
