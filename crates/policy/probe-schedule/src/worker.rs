//! One probe of one container: the decisions of a tick and the counting of outcomes (pod-lifecycle 8.2).

use model::probe::{ProbeKind, ProbeOutcome, ProbeVerdict};
use model::{ContainerId, Timestamp};

use crate::seen::{Life, Seen, SeenContainer};
use crate::settings::Settings;

/// Containers that started longer than this before the daemon keep what they had (pod-lifecycle 8.5), in nanoseconds.
const ADOPTED_AFTER: i64 = 10_000_000_000;

/// A change of the published results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// This instance has this verdict now.
    Set(ContainerId, ProbeVerdict),
    /// Forget this instance.
    Remove(ContainerId),
}

/// Why nothing is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// The pod has no status yet.
    NoStatus,
    /// The container has no instance yet.
    NoContainer,
    /// Decided; waits for the next instance.
    OnHold,
    /// The instance does not run.
    NotRunning,
    /// Still within `initialDelaySeconds`.
    InitialDelay,
    /// Startup: the container has started already.
    Started,
    /// Liveness or readiness: the container has not started yet.
    NotStarted,
}

/// What comes next for this probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing until the next tick.
    Wait(Idle),
    /// Carry the probe out, then call [`Worker::finish`].
    Run,
    /// It is over; the worker is to be dropped.
    Exit,
}

/// Outcome of a tick.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tick {
    /// Changes of the published results, in order.
    pub changes: Vec<Change>,
    /// What comes next.
    pub next: Next,
}

/// What decisions depend on beside the status (wall clock).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Now.
    pub now: Timestamp,
    /// When this daemon started.
    pub daemon_started: Timestamp,
    /// What an earlier daemon last decided about this instance, if that was kept.
    pub kept: Option<ProbeVerdict>,
}

/// State of one probe of one container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worker {
    settings: Settings,
    /// The pod was being deleted when probing began.
    deleting: bool,
    container: Option<ContainerId>,
    verdict: Option<ProbeVerdict>,
    on_hold: bool,
    run: Option<(bool, u32)>,
    /// When the instance was first seen, until its initial delay is over.
    delayed_from: Option<Timestamp>,
}

impl Worker {
    /// A worker that has seen nothing.
    #[must_use]
    pub fn new(settings: Settings, deleting: bool) -> Self {
        let delayed_from = Some(Timestamp(i64::MAX));
        Self { settings, deleting, container: None, verdict: None, on_hold: false, run: None, delayed_from }
    }

    /// A worker that goes on with a verdict kept from an earlier life of its manager.
    #[must_use]
    pub fn resumed(settings: Settings, deleting: bool, container: ContainerId, verdict: ProbeVerdict) -> Self {
        let on_hold = holds(settings.kind, verdict);
        Self { container: Some(container), verdict: Some(verdict), on_hold, ..Self::new(settings, deleting) }
    }

    /// The numbers that it works with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The instance that it watches.
    #[must_use]
    pub fn container(&self) -> Option<&ContainerId> {
        self.container.as_ref()
    }

    /// Its verdict about that instance, if one was set.
    #[must_use]
    pub fn verdict(&self) -> Option<ProbeVerdict> {
        self.verdict
    }

    /// Decides what to do now; `seen` is `None` while the pod has no status.
    pub fn tick(&mut self, seen: Option<&Seen>, times: Times) -> Tick {
        let mut changes = Vec::new();
        let next = self.decide(seen, times, &mut changes);
        if next == Next::Exit {
            changes.extend(self.forget());
        }
        Tick { changes, next }
    }

    /// Removes what was published, for a worker that is dropped.
    pub fn forget(&mut self) -> Option<Change> {
        let had = self.verdict.take().is_some();
        self.container.take().filter(|_| had).map(Change::Remove)
    }

    fn decide(&mut self, seen: Option<&Seen>, times: Times, changes: &mut Vec<Change>) -> Next {
        let Some(seen) = seen else { return Next::Wait(Idle::NoStatus) };
        if seen.over {
            return Next::Exit;
        }
        let Some(container) = &seen.container else { return Next::Wait(Idle::NoContainer) };
        if self.container.as_ref() != Some(&container.id) {
            self.adopt(container, times, changes);
        }
        if self.on_hold {
            return Next::Wait(Idle::OnHold);
        }
        let since = match container.life {
            Life::Running { since } => since,
            // A kubelet sets Failure here too. An instance that is seen between its creation and its start would then
            // begin its life with a failed liveness probe.
            Life::Waiting => return Next::Wait(Idle::NotRunning),
            Life::Terminated { restarts } => {
                self.set(ProbeVerdict::Failure, changes);
                return if restarts { Next::Wait(Idle::NotRunning) } else { Next::Exit };
            }
        };
        if self.deleting && self.settings.kind != ProbeKind::Readiness {
            self.set(ProbeVerdict::Success, changes);
            return Next::Exit;
        }
        if self.is_delayed(since, times.now) {
            return Next::Wait(Idle::InitialDelay);
        }
        match (self.settings.kind, container.started) {
            (ProbeKind::Startup, true) => Next::Wait(Idle::Started),
            (ProbeKind::Startup, false) | (ProbeKind::Liveness | ProbeKind::Readiness, true) => Next::Run,
            (ProbeKind::Liveness | ProbeKind::Readiness, false) => Next::Wait(Idle::NotStarted),
        }
    }

    /// Whether `initialDelaySeconds` are not over yet; what is over for an instance stays over.
    // COMPAT(kubelet): there, a clock that was set back by an hour stops all probes for an hour. Here a start that lies in the
    // future counts from when the instance was first seen, by the clock as it is now.
    fn is_delayed(&mut self, since: Timestamp, now: Timestamp) -> bool {
        let Some(seen) = self.delayed_from else { return false };
        let seen = Timestamp(seen.0.min(now.0));
        let waited = now.nanos_since(since).max(now.nanos_since(seen)) / 1_000_000_000;
        let is_delayed = waited < self.settings.initial_delay_s;
        self.delayed_from = is_delayed.then_some(seen);
        is_delayed
    }

    /// A new instance: the old result goes, an initial one is set unless the instance is older than this daemon.
    fn adopt(&mut self, container: &SeenContainer, times: Times, changes: &mut Vec<Change>) {
        changes.extend(self.forget());
        self.container = Some(container.id.clone());
        self.on_hold = false;
        self.delayed_from = Some(times.now);
        // COMPAT(kubelet): there, failures of the former instance keep counting.
        self.run = None;
        let settings = self.settings;
        // A verdict that was kept is proof that an earlier daemon knew the instance, however young it is.
        let older = times.kept.is_some()
            || matches!(container.life, Life::Running { since }
                if times.daemon_started.nanos_since(since) > ADOPTED_AFTER);
        let initial = match settings.kind {
            // A restart of the daemon forgets no verdict: an upgrade of a kubelet on 1.34 made every pod unready.
            _ if times.kept.is_some() => times.kept,
            // Without it the initialisation of the pod would stall behind this sidecar.
            ProbeKind::Startup if older && settings.sidecar && container.started => Some(ProbeVerdict::Success),
            _ if older => None,
            ProbeKind::Readiness => Some(ProbeVerdict::Failure),
            ProbeKind::Liveness => Some(ProbeVerdict::Success),
            ProbeKind::Startup => Some(ProbeVerdict::Unknown),
        };
        if let Some(verdict) = initial {
            self.set(verdict, changes);
            self.on_hold = older && holds(settings.kind, verdict);
        }
    }

    fn set(&mut self, verdict: ProbeVerdict, changes: &mut Vec<Change>) {
        if self.verdict == Some(verdict) {
            return;
        }
        if let Some(id) = &self.container {
            self.verdict = Some(verdict);
            changes.push(Change::Set(id.clone(), verdict));
        }
    }

    /// Counts the outcome of a probe that [`Next::Run`] asked for.
    pub fn finish(&mut self, outcome: ProbeOutcome) -> Option<Change> {
        let good = match outcome {
            ProbeOutcome::Success | ProbeOutcome::Warning => true,
            ProbeOutcome::Failure => false,
            ProbeOutcome::Error => return None,
        };
        let run = match self.run {
            Some((last, n)) if last == good => n.saturating_add(1),
            _ => 1,
        };
        self.run = Some((good, run));
        let threshold = if good { self.settings.success_threshold } else { self.settings.failure_threshold };
        if run < threshold {
            return None;
        }
        let verdict = if good { ProbeVerdict::Success } else { ProbeVerdict::Failure };
        let mut changes = Vec::new();
        self.set(verdict, &mut changes);
        if holds(self.settings.kind, verdict) {
            self.on_hold = true;
            self.run = None;
        }
        changes.pop()
    }
}

/// A verdict after which an instance is not probed any more.
fn holds(kind: ProbeKind, verdict: ProbeVerdict) -> bool {
    match kind {
        ProbeKind::Startup => verdict != ProbeVerdict::Unknown,
        ProbeKind::Liveness => verdict == ProbeVerdict::Failure,
        ProbeKind::Readiness => false,
    }
}
