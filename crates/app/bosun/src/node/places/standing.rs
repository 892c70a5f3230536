//! How a place stands, and the words that its parts have in common.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::Clock;
use contract::{Role, Seat, Wiring};
use manager_probation::Asked;
use model::Timestamp;
use node_config::{RemoteManager, WhenAway};
use remote_manager::{Life, Link};
use server::local::{AskedLine, Done, HistoryLine, ManagerLine, NotDone, RefusedLine, ShadowLine, SwapOrder};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::trial::Tenure;

/// Changes of a place that are told later.
const HISTORY: usize = 32;

/// Who is to serve a role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Choice {
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
pub(super) struct Before {
    pub(super) chosen: Choice,
    pub(super) serving: Choice,
}

/// What a command wants.
pub(super) enum Want {
    Swap(SwapOrder),
    RollBack,
}

/// A command and the way back.
pub(super) struct Order {
    pub(super) want: Want,
    pub(super) done: oneshot::Sender<Result<Done, NotDone>>,
}

/// How a place stands; what is shown of it.
pub(super) struct Standing {
    pub(super) role: &'static str,
    pub(super) clock: Clock,
    pub(super) configured: Option<RemoteManager>,
    pub(super) serving: Choice,
    pub(super) since: Timestamp,
    pub(super) chosen: Choice,
    pub(super) by_command: bool,
    pub(super) before: Option<Before>,
    /// Of a process that serves.
    pub(super) link: Option<Link>,
    /// Why the chosen one is not there, while another one serves.
    pub(super) away: Option<String>,
    /// Until when it is on probation.
    pub(super) probation: Option<Instant>,
    pub(super) tenure: Tenure,
    pub(super) seat: Arc<Seat>,
    pub(super) history: VecDeque<HistoryLine>,
    pub(super) shadow: Option<ShadowLine>,
}

pub(super) type Shared = Arc<Mutex<Standing>>;

pub(super) fn locked(shared: &Shared) -> MutexGuard<'_, Standing> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Standing {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }

    /// How asks fared with the one that serves, and with the one before.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.tenure.fared(&self.seat)
    }

    pub(super) fn note(&mut self, text: String) {
        let at_ns = self.now().0;
        self.history.push_back(HistoryLine { at_ns, text });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    pub(super) fn line(&self, name: &str) -> ManagerLine {
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
            asked: self.asked().into_iter().map(asked_line).collect(),
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

fn asked_line(asked: Asked) -> AskedLine {
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

pub(super) fn standing<R: Role>(wiring: &Wiring, configured: Option<RemoteManager>, clock: Clock) -> Shared {
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
        tenure: Tenure::of::<R>(),
        history: VecDeque::new(),
        shadow: None,
    }))
}
