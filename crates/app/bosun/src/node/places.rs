//! Places: who serves the roles that another process may serve, as the configuration says and as commands change it.
//!
//! Each of these roles has a task ([`keep`]) that owns its place: it gives the place to whom was chosen, watches him through his
//! probation ([`trial`]), and gives it back. What was chosen is kept here, outside of every actor: an actor that dies is built
//! anew as what it was. The daemon's end ends it; then the configuration says who serves.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::Clock;
use contract::{Role, Wiring};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::Timestamp;
use node_config::{RemoteManager, RemoteManagers, WhenAway};
use remote_manager::{Life, Link};
use server::local::{AskedLine, Done, HistoryLine, ManagerLine, Managers, NotDone, RefusedLine, ShadowLine, SwapOrder};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Builder;
use keep::{Place, stand_in};

mod keep;
mod orders;
mod shadow;
mod trial;

/// Changes of a place that are told later.
const HISTORY: usize = 32;
/// Orders that may wait for one place.
const ORDERS: usize = 4;

/// Who is to serve a role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Choice {
    /// The one that this program is built with.
    #[default]
    Builtin,
    /// A process.
    Remote(RemoteManager),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Remote(remote) => write!(f, "{}", remote.remote),
        }
    }
}

/// How it was before a command changed it. Who serves is not who was chosen while that one is away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Before {
    chosen: Choice,
    serving: Choice,
}

/// What a command wants.
enum Want {
    Swap(SwapOrder),
    RollBack,
}

/// A command and the way back.
struct Order {
    want: Want,
    done: oneshot::Sender<Result<Done, NotDone>>,
}

/// How a place stands; what is shown of it.
struct Standing {
    role: &'static str,
    clock: Clock,
    configured: Option<RemoteManager>,
    serving: Choice,
    since: Timestamp,
    chosen: Choice,
    by_command: bool,
    before: Option<Before>,
    /// Of a process that serves.
    link: Option<Link>,
    /// Why the chosen one is not there, while another one serves.
    away: Option<String>,
    /// Until when it is on probation.
    probation: Option<Instant>,
    tenure: trial::Tenure,
    seat: Arc<contract::Seat>,
    history: VecDeque<HistoryLine>,
    shadow: Option<ShadowLine>,
}

type Shared = Arc<Mutex<Standing>>;

fn locked(shared: &Shared) -> MutexGuard<'_, Standing> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Standing {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }

    fn note(&mut self, text: String) {
        let at_ns = self.now().0;
        self.history.push_back(HistoryLine { at_ns, text });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    fn line(&self, name: &str) -> ManagerLine {
        let life = self.link.as_ref().map(|link| link.life().borrow().clone());
        let (program, gone) = match life {
            Some(Life::Up { program, version }) => (Some(format!("{program} {version}")), None),
            Some(Life::Away(why)) => (None, Some(why)),
            None => (None, None),
        };
        let chosen_by = match (self.by_command, &self.configured) {
            (true, _) => "command",
            (false, Some(_)) => "configuration",
            (false, None) => "nobody",
        };
        ManagerLine {
            name: name.to_owned(),
            role: self.role.to_owned(),
            served_by: self.serving.to_string(),
            program,
            away: gone.or_else(|| self.away.clone()),
            since_ns: self.since.0,
            chosen: self.chosen.to_string(),
            chosen_by: chosen_by.to_owned(),
            after_restart: self.after_restart(name),
            before: self.before.as_ref().map(|before| before.chosen.to_string()),
            probation_left_ms: self.probation.map(|until| {
                let left = until.saturating_duration_since(Instant::now());
                u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
            }),
            asked: self.tenure.fared(&self.seat).into_iter().map(asked_line).collect(),
            remembered: self.seat.remembered() as u64,
            refused: self.link.as_ref().map(|link| {
                let s = link.status();
                let (calls, answers) = (s.refused_calls, s.refused_answers);
                RefusedLine { rows: s.refused_rows, calls, answers, keys: s.refused_keys }
            }),
            history: self.history.iter().cloned().collect(),
            shadow: self.shadow.clone(),
        }
    }

    /// The configuration wins then: said as it is, and how to make it say the same.
    fn after_restart(&self, name: &str) -> String {
        let configured = self.configured.clone().map_or(Choice::Builtin, Choice::Remote);
        match &self.chosen {
            _ if !self.by_command || self.chosen == configured => format!("{configured}, as the configuration says"),
            Choice::Remote(remote) => {
                format!("{configured}, as the configuration says; to keep this one: --manager {}", flag(name, remote))
            }
            Choice::Builtin => {
                format!("{configured}, as the configuration says; to keep this one: take managers.{name} out of it")
            }
        }
    }
}

/// As the flag has it.
fn flag(name: &str, remote: &RemoteManager) -> String {
    let when_away = match remote.when_away {
        WhenAway::Builtin => "builtin",
        WhenAway::Hold => "hold",
        WhenAway::Fail => "fail",
    };
    format!("{name}={},whenAway={when_away},probation={}s", remote.remote, remote.probation.as_secs())
}

fn asked_line(asked: manager_probation::Asked) -> AskedLine {
    let fared = asked.now;
    let micros = |time: Option<Duration>| time.map(|t| u64::try_from(t.as_micros()).unwrap_or(u64::MAX));
    AskedLine {
        message: asked.message.to_owned(),
        answered: fared.answers(),
        failed: fared.failed,
        expired: fared.expired,
        lost: fared.crashed + fared.unheard,
        half_within_us: micros(fared.within(50)),
        most_within_us: micros(fared.within(99)),
    }
}

/// All places, for whoever shows and changes them from other threads. Clones are the same.
#[derive(Clone, Default)]
pub struct Places(BTreeMap<&'static str, (Shared, mpsc::Sender<Order>)>);

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Places {
    fn order(&self, name: &str, want: Want) -> BoxFuture<'static, Result<Done, NotDone>> {
        let orders = self.0.get(name).map(|(_, orders)| orders.clone());
        async move {
            let refused = |why: &str| Err(NotDone::Refused(why.to_owned()));
            let Some(orders) = orders else { return refused("there is no such manager") };
            let (done, answer) = oneshot::channel();
            match orders.try_send(Order { want, done }) {
                Ok(()) => answer.await.unwrap_or_else(|_| Err(NotDone::Failed("the node stops".to_owned()))),
                Err(mpsc::error::TrySendError::Full(_)) => refused("it is busy with other orders; try again"),
                Err(mpsc::error::TrySendError::Closed(_)) => refused("the node stops"),
            }
        }
        .boxed()
    }
}

impl Managers for Places {
    fn lines(&self) -> Vec<ManagerLine> {
        self.0.iter().map(|(name, (standing, _))| locked(standing).line(name)).collect()
    }

    fn swap(&self, name: &str, order: SwapOrder) -> BoxFuture<'static, Result<Done, NotDone>> {
        self.order(name, Want::Swap(order))
    }

    fn roll_back(&self, name: &str) -> BoxFuture<'static, Result<Done, NotDone>> {
        self.order(name, Want::RollBack)
    }
}

macro_rules! places {
    ($($name:literal: $field:ident, $role:ident;)*) => {
        /// Names of the roles with a place.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];

        impl Builder {
            /// Has these managers served by other processes, and lets commands change who serves: through what is answered.
            #[must_use]
            pub fn places(mut self, managers: &RemoteManagers, clock: &Clock) -> (Self, Places) {
                let mut places = Places::default();
                $(
                    let configured = managers.get($name).cloned();
                    let shared = standing::<contract::$role>(&self.wiring, configured.clone(), clock.clone());
                    let (orders, waiting) = mpsc::channel(ORDERS);
                    places.0.insert($name, (shared.clone(), orders));
                    let mut place = Place::new(shared, self.$field.clone(), waiting);
                    if let Some(remote) = configured.filter(|remote| remote.when_away != WhenAway::Builtin) {
                        let link = place.holds(&remote);
                        self = self.$field(move |setup| stand_in(setup, &remote, link.clone()));
                    }
                    self = self.when_up(move |node| {
                        let node = node.clone();
                        drop(tokio::task::spawn_local(async move { place.keep(&node).await }));
                    });
                )*
                (self, places)
            }
        }
    };
}
places! {
    "images": image_manager, ImageManager;
    "probes": probe_manager, ProbeManager;
    "status": status_manager, StatusManager;
    "volumes": volume_manager, VolumeManager;
}

fn standing<R: Role>(wiring: &Wiring, configured: Option<RemoteManager>, clock: Clock) -> Shared {
    Arc::new(Mutex::new(Standing {
        role: R::NAME,
        since: Timestamp(clock.unix_nanos()),
        seat: wiring.seat::<R>(&clock),
        clock,
        chosen: configured.clone().map_or(Choice::Builtin, Choice::Remote),
        configured,
        serving: Choice::Builtin,
        by_command: false,
        before: None,
        link: None,
        away: None,
        probation: None,
        tenure: trial::Tenure::of::<R>(),
        history: VecDeque::new(),
        shadow: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_knows_the_same_names() {
        assert_eq!(NAMES, node_config::REMOTE_MANAGERS);
    }
}
