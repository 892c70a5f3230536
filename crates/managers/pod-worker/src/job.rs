//! One step of a worker: what it works on, and the small things that every step does.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, Class, Clock, Effects, watch};
use contract::runtime::{CallError, CallErrorKind, ObservePod};
use contract::{Asks, Crew, PodWorker, RoleMessage, Unanswered};
use model::allocation::PendingResize;
use model::core::{Container, Pod};
use model::event::{EventObject, EventType, NodeEvent};
use model::history::What;
use model::pod::ContainerKind;
use model::runtime::PodObservation;
use model::{PodUid, Timestamp};
use ports::host::{HostFs, HostResult};

use crate::chronicle::Chronicle;
use crate::deps::Deps;
use crate::memo::{Memo, Record};

/// Managers that died over an ask are asked again this often in a step.
const ASK_RETRIES: u8 = 3;
/// And this much later: by then they are rebuilt.
pub(crate) const REBUILT: Duration = Duration::from_millis(20);

/// What the actor tells a step under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Stopping was asked for: end early where that is safe.
    pub(crate) stop: bool,
    /// Grace now in force, seconds.
    pub(crate) grace_s: Option<i64>,
}

/// Why a step did not succeed, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Text for the log and for `bosun get actors`.
    pub(crate) message: String,
    /// When to try again.
    pub(crate) retry: Retry,
}

/// When to try again (pod-lifecycle 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The general error back-off, 10 s jittered.
    Later,
    /// The network is not ready: 1 s jittered.
    Network,
    /// A crash back-off ends then.
    At(Timestamp),
    /// Stopping was asked for, or a call got lost: the next step is due at once.
    Now,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: Retry::Later }
    }
}

/// A step's surroundings.
pub(crate) struct Job {
    pub(crate) crew: Crew<PodWorker>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) uid: PodUid,
    pub(crate) pod: Arc<Pod>,
    /// A resize of it that is not granted.
    pub(crate) pending: Option<PendingResize>,
    pub(crate) memo: Memo,
    pub(crate) signal: watch::Receiver<Signal>,
    pub(crate) effects: Effects,
    pub(crate) clock: Clock,
    /// Seeds names of termination log files.
    pub(crate) seed: u64,
    /// See [`Job::ask`].
    pub(crate) ask_retries: AskRetries,
    /// What the step waits for now, for people.
    pub(crate) stage: Stage,
    /// What happens is noted here, for people.
    pub(crate) chronicle: Chronicle,
}

/// What a step waits for, in words that follow "waits for". Shared by a step and its actor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage(Rc<Cell<&'static str>>);

impl Stage {
    pub(crate) fn set(&self, what: &'static str) {
        self.0.set(what);
    }

    pub(crate) fn get(&self) -> &'static str {
        self.0.get()
    }
}

/// How often managers that died may be asked again. A message that kills whoever handles it must not do so without end:
/// after that there are none until a step has succeeded.
#[derive(Debug)]
pub(crate) struct AskRetries {
    left: Cell<u8>,
    used: Cell<bool>,
}

impl AskRetries {
    pub(crate) fn new(memo: &Memo) -> Self {
        Self { left: Cell::new(if memo.lost { 0 } else { ASK_RETRIES }), used: Cell::new(memo.lost) }
    }

    /// Uses one up; whether there was one.
    pub(crate) fn use_one(&self) -> bool {
        self.used.set(true);
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

impl Job {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }

    pub(crate) fn stop_asked(&self) -> bool {
        self.signal.borrow().stop
    }

    /// What is remembered of this step.
    pub(crate) fn into_memo(self) -> Memo {
        Memo { lost: self.ask_retries.used.get(), ..self.memo }
    }

    /// Asks a manager. One that dies over what may be asked twice is rebuilt at once, and asked again: its death delays
    /// nothing.
    pub(crate) async fn ask<M: RoleMessage>(&self, message: M) -> Result<M::Result, AskError>
    where
        PodWorker: Asks<M>,
    {
        let may_repeat = M::UNANSWERED == Unanswered::Repeat;
        match self.crew.ask(message.clone()).await {
            Err(AskError::Crashed | AskError::NotDelivered) if may_repeat && self.ask_retries.use_one() => {
                tokio::time::sleep(REBUILT).await;
                self.crew.ask(message).await
            }
            answer => answer,
        }
    }

    /// As [`Job::ask`], for answers that can be failures themselves.
    pub(crate) async fn call<M, T, E>(&self, message: M) -> Result<T, E>
    where
        PodWorker: Asks<M>,
        M: RoleMessage<Result = Result<T, E>>,
        E: From<AskError>,
    {
        self.ask(message).await?
    }

    /// Whether a call that may not be made twice got lost with RuntimeClient, and looking again at once may help.
    pub(crate) fn got_lost(&self, e: &CallError) -> bool {
        e.kind == CallErrorKind::Lost && self.ask_retries.use_one()
    }

    /// Looks at the runtime. `force`: past any cache.
    pub(crate) async fn observe(&self, force: bool) -> Result<Arc<PodObservation>, CallError> {
        let ask = ObservePod {
            uid: self.uid.clone(),
            namespace: model::pod::namespace(&self.pod).to_owned(),
            name: model::pod::name(&self.pod).to_owned(),
            force,
        };
        self.during(What::Look, "", self.call(ask)).await
    }

    /// Emits an event about the node.
    pub(crate) fn node_event(&self, kind: EventType, reason: &'static str, message: impl Into<String>) {
        self.crew.emit(NodeEvent { kind, reason: reason.into(), message: message.into(), object: EventObject::Node });
    }

    /// Emits an event about the pod.
    pub(crate) fn event(&self, kind: EventType, reason: &'static str, message: impl Into<String>) {
        self.emit(kind, reason, message.into(), String::new());
    }

    /// Emits an event about one container.
    pub(crate) fn container_event(
        &self,
        kind: EventType,
        reason: &'static str,
        message: impl Into<String>,
        container: (ContainerKind, &str),
    ) {
        let field_path = format!("{}{{{}}}", container.0.field_path(), container.1);
        self.emit(kind, reason, message.into(), field_path);
    }

    fn emit(&self, kind: EventType, reason: &'static str, message: String, field_path: String) {
        let object = EventObject::Pod {
            namespace: model::pod::namespace(&self.pod).to_owned(),
            name: model::pod::name(&self.pod).to_owned(),
            uid: self.uid.clone(),
            field_path,
        };
        self.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
    }

    /// Runs file work off the actor's thread.
    pub(crate) async fn on_host<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn HostFs) -> HostResult<T> + Send + 'static,
    ) -> Result<T, String> {
        let fs = self.deps.fs.clone();
        match self.effects.attempt(Class::HostFiles, move || work(&*fs)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(actor::chain(&e)),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Writes the journal line, before the effect that it is about. A journal that cannot be written costs the memory of
    /// back-off over a restart, not the pod.
    pub(crate) async fn save_record(&mut self) {
        let (journal, uid, record) = (self.deps.journal.clone(), self.uid.clone(), self.memo.record.clone());
        let saved = self.effects.attempt(Class::Journal, move || record.save(&*journal, &uid)).await;
        match saved {
            Ok(Ok(())) => self.memo.saved = true,
            Ok(Err(e)) => tracing::warn!(uid = %self.uid, error = %e, "journal line is not written"),
            Err(e) => tracing::warn!(uid = %self.uid, error = %e, "journal line is not written"),
        }
    }

    /// As [`Job::save_record`], where a loss costs the pod its start time and nothing else.
    pub(crate) fn save_record_soon(&mut self) {
        match self.memo.record.save_soon(&*self.deps.journal, &self.uid) {
            Ok(()) => self.memo.saved = true,
            Err(e) => tracing::warn!(uid = %self.uid, error = %e, "journal line is not written"),
        }
    }

    /// Removes the journal line of a pod that is done.
    pub(crate) fn forget_record(&self) {
        Record::forget(&*self.deps.journal, &self.uid);
        self.chronicle.forget(&*self.deps.journal);
    }

    pub(crate) fn pod_log_dir(&self) -> PathBuf {
        PathBuf::from(pod_plan::logs::pod_log_dir(&self.deps.config.node.pod_logs_dir, &self.pod))
    }

    pub(crate) fn container_log_dir(&self, container: &str) -> PathBuf {
        self.pod_log_dir().join(container)
    }
}

/// The image as written, with the textual default tag.
pub(crate) fn image_of(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

/// `path` as text; paths of ours are UTF-8.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
