//! Managers in processes of their own, as the configuration names them: put into their places, and held there.
//!
//! With `hold` and `fail` a stand-in has the place for good. With `builtin` the one that is built in has it until the other process
//! answers, and again while it is away; each time the place goes over as [`Node::replace`] says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::event::RecordEvent;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::seam::StandIn;
use contract::{Answers, Crew, ProbeManager, Role, Supervisor};
use model::PodUid;
use model::event::{EventObject, EventType, NodeEvent};
use node_config::{RemoteManager, RemoteManagers, WhenAway};
use remote_manager::{Life, Link, Remote, To, describe};
use tokio::sync::watch;

use super::{Builder, HANDOVER, Node, Setup, managers};

/// A connection that comes back so soon costs no change of place.
const BLINK: Duration = Duration::from_secs(1);
/// How often one that is away is asked for.
const ASKED: Duration = Duration::from_secs(1);
/// Longest time that one has to stay away which goes again and again.
const LONGEST_REST: Duration = Duration::from_secs(600);

impl Builder {
    /// Has these managers served by other processes.
    #[must_use]
    pub fn remote_managers(mut self, managers: &RemoteManagers) -> Self {
        for (name, remote) in managers {
            let remote = remote.clone();
            self = match name.as_str() {
                "probes" if remote.when_away == WhenAway::Builtin => {
                    let builtin = managers::probe_manager;
                    self.when_up(move |node| {
                        drop(tokio::task::spawn_local(keep::<ProbeManager>(node.clone(), remote, builtin)))
                    })
                }
                "probes" => self.probe_manager(move |setup| stand_in(setup, &remote, Link::default())),
                other => {
                    // `node_config::REMOTE_MANAGERS` has no others.
                    tracing::error!(manager = other, "this node knows no such manager");
                    self
                }
            };
        }
        self
    }
}

/// Spawns what stands in for a manager elsewhere.
fn stand_in<R: Role>(setup: &Setup<'_, R>, remote: &RemoteManager, link: Link)
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    let (desired, workers) = (setup.wiring.board::<DesiredPod>(), setup.wiring.board::<WorkerState>());
    let to = To {
        address: remote.remote.clone(),
        when_away: match remote.when_away {
            // Until the one that is built in takes the place.
            WhenAway::Builtin | WhenAway::Hold => remote_manager::WhenAway::Hold,
            WhenAway::Fail => remote_manager::WhenAway::Fail,
        },
        link,
        is_here: Arc::new(move |uid: &PodUid| desired.get(uid).is_some() || workers.get(uid).is_some()),
        journal: Some(setup.ports.journal.clone()),
    };
    setup.spawn(move |crew| Remote::stand_in(crew, to.clone()));
}

/// Gives the place to the other process whenever it answers, and back to the one that is built in when it is away.
async fn keep<R: Role>(node: Node, remote: RemoteManager, builtin: fn(&Setup<'_, R>))
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    let audit = node.wiring().crew::<Supervisor>();
    let mut rest = Duration::ZERO;
    loop {
        tokio::time::sleep(rest).await;
        until_there::<R>(&node, &remote).await;
        let (link, began) = (Link::default(), Instant::now());
        node.replace::<R>(|setup| stand_in(setup, &remote, link.clone()));
        tell::<R>(&audit, EventType::Normal, format!("{} is served by {} now", R::NAME, remote.remote));
        let why = until_away(link.life()).await;
        node.replace::<R>(builtin);
        rest = next_rest(began.elapsed(), remote.probation, rest);
        let words = format!(
            "{} is served by the one that is built in again, as {} is away: {why}; it is looked for in {} s",
            R::NAME,
            remote.remote,
            rest.as_secs()
        );
        tell::<R>(&audit, EventType::Warning, words);
    }
}

/// How long one stays away that has `lasted` so long: not at all, or when it did not outlast its probation, as long as that, and
/// longer each time.
fn next_rest(lasted: Duration, probation: Duration, before: Duration) -> Duration {
    if lasted >= probation { Duration::ZERO } else { probation.max(before * 2).min(LONGEST_REST) }
}

/// Waits until the manager that is wanted answers there.
async fn until_there<R: Role>(node: &Node, remote: &RemoteManager) {
    let (effects, hash) = (node.0.kernel.effects("remote-manager"), contract::seam::hash(&R::DECLARATION));
    let mut said = String::new();
    while let Err(e) = describe(&remote.remote, R::NAME, &hash, &effects).await {
        let why = e.to_string();
        if why != said {
            tracing::warn!(role = R::NAME, at = %remote.remote, why, "the one that is built in serves meanwhile");
            said = why;
        }
        tokio::time::sleep(ASKED).await;
    }
}

/// Waits until it is gone for longer than a blink; gives the reason. It may take as long as any actor to take the place.
async fn until_away(mut life: watch::Receiver<Life>) -> String {
    let is_up = |life: &Life| matches!(life, Life::Up { .. });
    let mut patience = HANDOVER + Duration::from_secs(10);
    loop {
        let came = tokio::time::timeout(patience, life.wait_for(is_up)).await.is_ok_and(|life| life.is_ok());
        if !came {
            return match &*life.borrow() {
                Life::Away(why) => why.clone(),
                Life::Up { .. } => "it comes and goes".to_owned(),
            };
        }
        patience = BLINK;
        let _nobody_stands_in = life.wait_for(|life| !is_up(life)).await.is_ok();
    }
}

/// The line for whoever looks later, and the event.
fn tell<R: Role>(audit: &Crew<Supervisor>, kind: EventType, message: String) {
    tracing::info!(target: "audit", role = R::NAME, message);
    let event = NodeEvent { kind, reason: "ManagerReplaced".into(), message, object: EventObject::Node };
    let _counted_by_the_kernel = audit.tell(RecordEvent::from(event));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_outlast_its_probation_has_to_stay_away_longer_each_time() {
        let s = Duration::from_secs;
        for (lasted, probation, before, rest) in [
            (s(60), s(60), s(0), s(0)),
            (s(3600), s(60), s(480), s(0)),
            (s(59), s(60), s(0), s(60)),
            (s(1), s(60), s(60), s(120)),
            (s(1), s(60), s(120), s(240)),
            (s(1), s(60), s(480), s(600)),
            (s(1), s(3600), s(0), s(600)),
            (s(1), s(0), s(0), s(0)),
        ] {
            assert_eq!(next_rest(lasted, probation, before), rest, "{lasted:?} of {probation:?} after {before:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_blink_is_no_absence() {
        let up = || Life::Up { program: "p".to_owned(), version: "1".to_owned() };
        let (tx, rx) = watch::channel(Life::Away("not yet".to_owned()));
        let waiting = tokio::spawn(until_away(rx));
        tokio::time::sleep(Duration::from_secs(35)).await;
        for _ in 0..3 {
            tx.send_replace(up());
            tokio::time::sleep(Duration::from_secs(5)).await;
            tx.send_replace(Life::Away("killed".to_owned()));
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(waiting.await.unwrap(), "killed");
        let (_tx, rx) = watch::channel(Life::Away("refused".to_owned()));
        assert_eq!(until_away(rx).await, "refused", "it never came");
    }
}
