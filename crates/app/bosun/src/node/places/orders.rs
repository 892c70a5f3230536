//! What commands do to a place.

use std::time::Duration;

use contract::seam::StandIn;
use contract::{Answers, Role};
use model::event::EventType;
use node_config::RemoteManager;
use remote_manager::{ConnectError, Life, Remote, check};
use server::local::{Done, NotDone, SwapOrder};
use tokio::time::{Instant, timeout};

use super::keep::{BEGINS, Place, by, is_up};
use super::shadow;
use super::standing::{Before, Choice, Order, Want};
use super::trial::absence;
use crate::node::{HANDOVER, Node};

impl<R: Role> Place<R>
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    /// Does what is ordered; `false`: nobody orders any more.
    pub(super) async fn follow(&mut self, node: &Node, order: Option<Order>) -> bool {
        let Some(Order { want, done }) = order else { return false };
        let result = match want {
            Want::Swap(order) => self.swap(node, order).await,
            Want::RollBack => self.roll_back(node),
        };
        // Whoever ordered it may have gone; it is done all the same.
        let _gone = done.send(result);
        true
    }

    async fn swap(&mut self, node: &Node, order: SwapOrder) -> Result<Done, NotDone> {
        let before = {
            let now = self.standing();
            Before { serving: now.serving.clone(), chosen: now.chosen.clone() }
        };
        let serving = &before.serving;
        let refused = |why: String| Err(NotDone::Refused(why));
        let to = choice(&order)?;
        let Choice::Remote(remote) = &to else {
            if order.shadow {
                return refused("--shadow is for a process: --to unix:///PATH".to_owned());
            }
            if *serving == to && before.chosen == to {
                return refused(format!("{} is served by builtin already", R::NAME));
            }
            if order.dry_run {
                return Ok(self.would(&to, Vec::new()));
            }
            let then = Before { serving: to.clone(), chosen: to };
            return Ok(self.settle(node, then, Some(before)));
        };
        if matches!(serving, Choice::Remote(now) if now.remote == remote.remote) {
            let words = "is served by it already; to begin its probation anew, roll back first";
            return refused(format!("{}: {} {words}", remote.remote, R::NAME));
        }
        if self.shown.as_ref().is_some_and(|shown| shown.is_of(remote)) && order.shadow {
            return refused(format!("{}: it is shown already what is asked", remote.remote));
        }
        // Its process serves one node at a time.
        self.shown = None;
        let found = self.checked(node, remote).await?;
        if order.dry_run {
            return Ok(self.would(&to, found));
        }
        if order.shadow {
            self.shown = Some(shadow::show::<R>(node, &self.shared, remote));
            let words = format!("it is shown for {} s what is asked of {}", remote.probation.as_secs(), R::NAME);
            return Ok(Done { lines: vec![words, "nothing is changed (--shadow)".to_owned()] });
        }
        self.take(node, remote, before).await
    }

    /// Gives the place to a process that was found good, and waits until it serves.
    async fn take(&mut self, node: &Node, remote: &RemoteManager, former: Before) -> Result<Done, NotDone> {
        let began = Instant::now();
        self.choose(Choice::Remote(remote.clone()), Some(former));
        self.begin(node, remote, true);
        let Some(link) = self.standing().link.clone() else {
            return Err(NotDone::Failed("it has lost the place already".to_owned()));
        };
        let mut life = link.life();
        let comes = async {
            let came = life.wait_for(is_up).await;
            came.map(|life| life.clone())
        };
        let came = timeout(HANDOVER + BEGINS, comes).await;
        let Ok(Ok(Life::Up { program, version })) = came else {
            let why = absence(&life.borrow());
            self.lost(node, &link, why.clone());
            let now = self.standing().serving.to_string();
            return Err(NotDone::Failed(format!(
                "{}: it did not begin: {why}; {} is served by {now}",
                remote.remote,
                R::NAME
            )));
        };
        self.was_up = true;
        let name = R::NAME;
        let lines = vec![
            format!(
                "{name} is served by {} ({program} {version}) after {} ms",
                remote.remote,
                began.elapsed().as_millis()
            ),
            format!(
                "it is on probation for {} s, and loses the place by itself if it does worse",
                remote.probation.as_secs()
            ),
        ];
        Ok(Done { lines })
    }

    fn roll_back(&mut self, node: &Node) -> Result<Done, NotDone> {
        let before = self.standing().before.clone();
        let Some(before) = before else {
            let words = "no swap of it is left to take back; `bosun manager swap` names one to swap to";
            return Err(NotDone::Refused(format!("{}: {words}", R::NAME)));
        };
        Ok(self.settle(node, before, None))
    }

    /// Gives the place to one that needs no probation: it is built in, or had the place before.
    fn settle(&mut self, node: &Node, then: Before, before: Option<Before>) -> Done {
        let Before { chosen, serving: to } = then;
        let former = self.standing().serving.clone();
        self.trial = None;
        self.rest = Duration::ZERO;
        self.standing().probation = None;
        if former != to {
            self.give(node, &to);
        }
        self.choose(chosen, before);
        let words = match former == to {
            true => format!("{} stays with {}, as a command says", R::NAME, by(&to)),
            false => format!("{} is served by {} again, as a command says, and by {former} no more", R::NAME, by(&to)),
        };
        self.tell(node, EventType::Normal, "ManagerReplaced", words.clone());
        Done { lines: vec![words] }
    }

    /// Whether the process would do: who it is, its contract, and whether it takes the rows of this node.
    async fn checked(&self, node: &Node, remote: &RemoteManager) -> Result<Vec<String>, NotDone> {
        let effects = node.0.kernel.effects("remote-manager");
        match check::<R>(&remote.remote, node.wiring(), &effects).await {
            Ok(it) => Ok(vec![
                format!("{}: {} {}, a {}", remote.remote, it.program, it.version, R::NAME),
                format!("its contract is the one here (hash {})", it.hash),
                "it took the rows of this node and answers".to_owned(),
            ]),
            Err(e @ ConnectError::Dial(..)) => {
                let mend = format!("start the manager's program with --at {}", remote.remote);
                Err(NotDone::Failed(format!("{e}; {mend}; nothing was changed")))
            }
            Err(e) => Err(NotDone::Failed(format!("{e}; nothing was changed"))),
        }
    }

    /// What a swap would do.
    fn would(&self, to: &Choice, mut lines: Vec<String>) -> Done {
        let now = self.standing();
        let (role, serving) = (R::NAME, &now.serving);
        lines.push(format!(
            "{role} would go from {serving} to {to}: messages wait, {serving} handles what it has and ends"
        ));
        lines.push(format!("{} remembered messages would be told to {to} before it serves", now.seat.remembered()));
        if let Choice::Remote(remote) = to {
            let seconds = remote.probation.as_secs();
            lines.push(format!(
                "it would be on probation for {seconds} s; then {serving} would have the place back if it did worse"
            ));
        }
        lines.push("nothing was changed (--dry-run)".to_owned());
        Done { lines }
    }
}
/// What an order names.
fn choice(order: &SwapOrder) -> Result<Choice, NotDone> {
    if order.to == "builtin" {
        return Ok(Choice::Builtin);
    }
    let read = node_config::chosen(&order.to, order.when_away.as_deref(), order.probation.as_deref());
    read.map(Choice::Remote).map_err(|errors| {
        let lines: Vec<String> = errors.into_iter().map(|e| e.to_string()).collect();
        let hint = if lines.iter().any(|l| l.starts_with("--to")) { "\n--to also takes: builtin" } else { "" };
        NotDone::Refused(lines.join("\n") + hint)
    })
}

#[cfg(test)]
mod tests {
    use node_config::WhenAway;

    use super::*;

    #[test]
    fn an_order_names_builtin_or_an_address_and_what_is_wrong_with_it_is_told_by_flag() {
        let order = |to: &str, when_away: Option<&str>, probation: Option<&str>| {
            let text = |t: &str| t.to_owned();
            choice(&SwapOrder {
                to: to.to_owned(),
                dry_run: false,
                shadow: false,
                probation: probation.map(text),
                when_away: when_away.map(text),
            })
        };
        assert_eq!(order("builtin", None, None), Ok(Choice::Builtin));
        let Ok(Choice::Remote(remote)) = order("unix:///run/p.sock", Some("hold"), Some("5m")) else { panic!() };
        assert_eq!((remote.when_away, remote.probation.as_secs()), (WhenAway::Hold, 300));
        let Err(NotDone::Refused(why)) = order("/run/p.sock", Some("pray"), Some("2h")) else { panic!() };
        let lines: Vec<&str> = why.lines().collect();
        assert!(lines[0].starts_with("--to: \"/run/p.sock\": ") && lines[0].contains("unix:///"), "{why}");
        assert!(lines[1].starts_with("--when-away: \"pray\"") && lines[1].contains("builtin, hold, fail"), "{why}");
        assert!(lines[2].starts_with("--probation: \"2h\": is out of range"), "{why}");
        assert_eq!(lines[3], "--to also takes: builtin");
    }
}
