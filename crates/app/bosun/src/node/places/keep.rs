//! The task that owns one place.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use contract::event::RecordEvent;
use contract::seam::StandIn;
use contract::{Answers, Crew, Role, Supervisor};
use futures::FutureExt;
use manager_probation::{Reason, Verdict, judge, next_rest, summary};
use model::event::{EventObject, EventType, NodeEvent};
use node_config::{RemoteManager, WhenAway};
use remote_manager::{Life, Link, Remote, describe};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::shadow::Shown;
use super::stand_in::stand_in;
use super::standing::{Before, Choice, Order, Shared, Standing, locked};
use super::trial::{Trial, absence};
use crate::node::{HANDOVER, Node, Setup};

/// A connection that comes back so soon costs no change of place.
const BLINK: Duration = Duration::from_secs(1);
/// How often one that is away is asked for, and one on probation is looked at.
const LOOKED: Duration = Duration::from_secs(1);
/// Longest time that one has to stay away which goes again and again.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// How long a process may take to begin when the one before has ended.
pub(super) const BEGINS: Duration = Duration::from_secs(10);

type BuiltIn<R> = Rc<dyn Fn(&Setup<'_, R>)>;

/// One place.
pub(super) struct Place<R: Role> {
    pub(super) shared: Shared,
    built_in: BuiltIn<R>,
    orders: mpsc::Receiver<Order>,
    pub(super) trial: Option<Trial>,
    /// The process that serves has been there.
    pub(super) was_up: bool,
    /// How long the one that the configuration names has to stay away.
    pub(super) rest: Duration,
    pub(super) shown: Option<Shown>,
}

impl<R: Role> Place<R>
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    pub(super) fn new(shared: Shared, built_in: BuiltIn<R>, orders: mpsc::Receiver<Order>) -> Self {
        Place { shared, built_in, orders, trial: None, was_up: false, rest: Duration::ZERO, shown: None }
    }

    /// The process has the place from the start, whether it is there or not.
    pub(super) fn holds(&mut self, remote: &RemoteManager) -> Link {
        let link = Link::default();
        let mut now = self.standing();
        now.serving = Choice::Remote(remote.clone());
        now.link = Some(link.clone());
        link
    }

    pub(super) fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        locked(&self.shared)
    }

    /// Keeps the place for as long as there are orders. A mistake here costs no manager its place.
    pub(super) async fn keep(&mut self, node: &Node) {
        while AssertUnwindSafe(self.attend(node)).catch_unwind().await.is_err() {
            tracing::error!(role = R::NAME, "the keeper of the place panicked; who serves it goes on");
            sleep(LOOKED).await;
        }
    }

    async fn attend(&mut self, node: &Node) {
        loop {
            let (chosen, serving) = {
                let now = self.standing();
                (now.chosen.clone(), now.serving.clone())
            };
            let goes_on = match chosen {
                Choice::Remote(remote) if Choice::Remote(remote.clone()) != serving => {
                    self.look_for(node, &remote).await
                }
                Choice::Remote(remote) => self.watch(node, &remote).await,
                Choice::Builtin => self.wait(node).await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// The next order; `false`: none will come.
    async fn wait(&mut self, node: &Node) -> bool {
        let order = self.orders.recv().await;
        self.follow(node, order).await
    }

    /// Waits until the chosen one is there, and gives it the place.
    async fn look_for(&mut self, node: &Node, remote: &RemoteManager) -> bool {
        let (rest, standing) = (self.rest, self.shared.clone());
        let there = async {
            sleep(rest).await;
            until_there::<R>(node, remote, &standing).await;
        };
        tokio::select! {
            order = self.orders.recv() => self.follow(node, order).await,
            () = there => {
                self.begin(node, remote, false);
                true
            }
        }
    }

    /// Watches the process that serves.
    async fn watch(&mut self, node: &Node, remote: &RemoteManager) -> bool {
        let Some(link) = self.standing().link.clone() else { return self.wait(node).await };
        let patience = if self.was_up { BLINK } else { HANDOVER + BEGINS };
        let away = until_away(link.life(), patience);
        tokio::pin!(away);
        let may_go = remote.when_away == WhenAway::Builtin || self.trial.is_some();
        loop {
            tokio::select! {
                order = self.orders.recv() => return self.follow(node, order).await,
                why = &mut away, if may_go => {
                    self.lost(node, &link, why);
                    return true;
                }
                () = sleep(LOOKED) => {
                    // What waited for it to begin has had time to be answered.
                    let was_up = self.was_up;
                    self.was_up |= is_up(&link.life().borrow());
                    if was_up && self.judged(node, &link) {
                        return true;
                    }
                }
            }
        }
    }

    /// Looks at the one on probation; whether that is over.
    fn judged(&mut self, node: &Node, link: &Link) -> bool {
        let asked = self.standing().asked();
        let Some(trial) = &mut self.trial else { return false };
        let seen = trial.seen(link, asked);
        match judge(&seen) {
            Verdict::Wait => false,
            Verdict::Keep => {
                self.trial = None;
                self.rest = Duration::ZERO;
                let words = {
                    let mut now = self.standing();
                    now.probation = None;
                    format!("{} stays with {}: {}", R::NAME, now.serving, summary(&seen))
                };
                self.tell(node, EventType::Normal, "ManagerKept", words);
                true
            }
            Verdict::RollBack(reason) => {
                self.fail(node, &reason);
                true
            }
        }
    }

    /// The process that serves is away.
    pub(super) fn lost(&mut self, node: &Node, link: &Link, why: String) {
        let asked = self.standing().asked();
        let reason = match &mut self.trial {
            Some(trial) => match judge(&trial.gone(link, asked, why.clone())) {
                Verdict::RollBack(reason) => reason,
                Verdict::Wait | Verdict::Keep => Reason::Gone(why),
            },
            None => Reason::Gone(why),
        };
        self.fail(node, &reason);
    }

    /// Takes the place from the process that serves. One that a command chose loses it for good while it is on probation; one
    /// that is to have it whenever it is there is looked for again.
    fn fail(&mut self, node: &Node, reason: &Reason) {
        let trial = self.trial.take();
        let (serving, before) = {
            let mut now = self.standing();
            now.probation = None;
            (now.serving.clone(), now.before.clone())
        };
        if trial.as_ref().is_some_and(|t| t.is_ordered) {
            let Before { chosen, serving: to } = before.unwrap_or_default();
            self.give(node, &to);
            self.choose(chosen, None);
            let by = by(&to);
            let words = format!("{} is served by {by} again, as {serving} is rolled back: {reason}", R::NAME);
            return self.tell(node, EventType::Warning, "ManagerRolledBack", words);
        }
        self.give(node, &Choice::Builtin);
        if let Choice::Remote(remote) = &serving {
            let lasted = trial.map_or(remote.probation, |trial| trial.lasted());
            self.rest = next_rest(lasted, remote.probation, self.rest, LONGEST_REST);
        }
        self.standing().away = Some(reason.to_string());
        let looked_for = match self.rest.as_secs() {
            0 => "it has the place again when it answers".to_owned(),
            seconds => format!("it is looked for in {seconds} s"),
        };
        let words = format!(
            "{} is served by the one that is built in again instead of {serving}: {reason}; {looked_for}",
            R::NAME
        );
        self.tell(node, EventType::Warning, "ManagerReplaced", words);
    }

    /// What is chosen from now on.
    pub(super) fn choose(&self, choice: Choice, before: Option<Before>) {
        let mut now = self.standing();
        let configured = now.configured.clone().map_or(Choice::Builtin, Choice::Remote);
        now.by_command = choice != configured;
        now.chosen = choice;
        now.before = before;
        now.away = None;
    }

    /// Gives the place to a process that is there, on probation.
    pub(super) fn begin(&mut self, node: &Node, remote: &RemoteManager, is_ordered: bool) {
        let mut trial = Trial::new::<R>(node.wiring(), remote.probation, is_ordered);
        self.give(node, &Choice::Remote(remote.clone()));
        let until = trial.begin();
        self.trial = Some(trial);
        self.standing().probation = Some(until);
        let (role, seconds) = (R::NAME, remote.probation.as_secs());
        let words = format!("{role} is served by {} now, on probation for {seconds} s", remote.remote);
        self.tell(node, EventType::Normal, "ManagerReplaced", words);
    }

    /// Has the role served by another one from now on.
    pub(super) fn give(&mut self, node: &Node, to: &Choice) {
        self.shown = None;
        self.was_up = false;
        let link = match to {
            Choice::Builtin => {
                node.replace::<R>(|setup| (self.built_in)(setup));
                None
            }
            Choice::Remote(remote) => {
                let link = Link::default();
                node.replace::<R>(|setup| stand_in(setup, remote, link.clone()));
                Some(link)
            }
        };
        let mut now = self.standing();
        let seat = now.seat.clone();
        now.tenure.next(&seat);
        now.serving = to.clone();
        now.since = now.now();
        now.link = link;
        now.away = None;
    }

    /// The line for whoever looks later, the event, and the history of the place.
    pub(super) fn tell(&self, node: &Node, kind: EventType, reason: &'static str, message: String) {
        self.standing().note(message.clone());
        tracing::info!(target: "audit", role = R::NAME, message);
        let audit: Crew<Supervisor> = node.wiring().crew();
        let event = NodeEvent { kind, reason: reason.into(), message, object: EventObject::Node };
        let _counted_by_the_kernel = audit.tell(RecordEvent::from(event));
    }
}

pub(super) fn by(choice: &Choice) -> String {
    match choice {
        Choice::Builtin => "the one that is built in".to_owned(),
        Choice::Remote(remote) => remote.remote.to_string(),
    }
}

/// Waits until the manager that is wanted answers there.
async fn until_there<R: Role>(node: &Node, remote: &RemoteManager, standing: &Shared) {
    let (effects, hash) = (node.0.kernel.effects("remote-manager"), contract::seam::hash(&R::DECLARATION));
    let mut said = String::new();
    while let Err(e) = describe(&remote.remote, R::NAME, &hash, &effects).await {
        let why = e.to_string();
        if why != said {
            tracing::warn!(role = R::NAME, at = %remote.remote, why, "the one that is built in serves meanwhile");
            locked(standing).away = Some(why.clone());
            said = why;
        }
        sleep(LOOKED).await;
    }
}

pub(super) fn is_up(life: &Life) -> bool {
    matches!(life, Life::Up { .. })
}

/// Waits until it is gone for longer than a blink; gives the reason. `patience`: how long it may take to come at first.
async fn until_away(mut life: watch::Receiver<Life>, mut patience: Duration) -> String {
    loop {
        let came = timeout(patience, life.wait_for(is_up)).await.is_ok_and(|life| life.is_ok());
        if !came {
            return absence(&life.borrow());
        }
        patience = BLINK;
        let _nobody_stands_in = life.wait_for(|life| !is_up(life)).await.is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_blink_is_no_absence() {
        let up = || Life::Up { program: "p".to_owned(), version: "1".to_owned() };
        let (tx, rx) = watch::channel(Life::Away("not yet".to_owned()));
        let waiting = tokio::spawn(until_away(rx, HANDOVER + BEGINS));
        sleep(Duration::from_secs(35)).await;
        for _ in 0..3 {
            tx.send_replace(up());
            sleep(Duration::from_secs(5)).await;
            tx.send_replace(Life::Away("killed".to_owned()));
            sleep(Duration::from_millis(900)).await;
        }
        assert!(!waiting.is_finished());
        sleep(Duration::from_millis(200)).await;
        assert_eq!(waiting.await.unwrap(), "killed");
        let (_tx, rx) = watch::channel(Life::Away("refused".to_owned()));
        assert_eq!(until_away(rx, BLINK).await, "refused", "it never came");
    }
}
