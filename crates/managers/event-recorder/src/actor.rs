//! The actor: judges, keeps the list, logs, delivers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Handler, supervised};
use contract::Crew;
use contract::board::{BoardReader, ValuePoster};
use contract::config_sources::Source;
use contract::event::{EventEntry, EventView, RecordEvent};
use contract::pod_manager::DesiredPod;
use model::event::{EventObject, EventType};
use model::{PodUid, Timestamp};
use ports::api::{ApiError, ApiServer, Method, PatchKind, Request, Throttle};

use crate::correlate::{Verdict, key_of};
use crate::memory::Memory;
use crate::outbox::{Next, Outbox, Waiting};
use crate::wire::Reporter;

/// Pause between tries.
const RETRY: Duration = Duration::from_secs(10);

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Lines kept in the list.
    pub lines: usize,
}

impl Default for Config {
    /// Enough for what 110 pods say while they start.
    fn default() -> Self {
        Self { lines: 1000 }
    }
}

/// Where events go beside the list.
#[derive(Clone)]
pub struct Sink {
    /// The API server.
    pub api: Arc<dyn ApiServer>,
    /// Who reports.
    pub reporter: Reporter,
    /// What waits; made once, so that it outlives a restart of the recorder.
    pub outbox: Outbox,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}

impl Sink {
    fn push(&self, line: &EventEntry, pods: &BoardReader<PodUid, DesiredPod>) {
        let version = match &line.object {
            EventObject::Pod { uid, .. } => {
                let row = pods.get(uid).filter(|row| row.source == Source::Api);
                row.and_then(|row| row.pod.metadata.resource_version.clone())
            }
            EventObject::Claim { resource_version, .. } => Some(resource_version.clone()),
            EventObject::Node | EventObject::Unknown => None,
        };
        self.outbox.lock().push(line, version, |nanos| self.reporter.name(&line.object, nanos));
    }

    fn request(&self, event: &Waiting) -> Request {
        let path = format!("/api/v1/namespaces/{}/events", self.reporter.namespace(&event.line.object));
        let (request, body) = if event.known {
            let patch = Request::new(Method::Patch(PatchKind::Strategic), format!("{path}/{}", event.name));
            (patch, self.reporter.repetition(&event.line))
        } else {
            let event = self.reporter.event(&event.name, &event.line, event.resource_version.as_deref());
            (Request::new(Method::Post, path), event)
        };
        request.throttle(Throttle::Events).body(body.to_string())
    }
}

/// The actor.
#[derive(Debug)]
pub struct EventRecorder {
    config: Config,
    view: ValuePoster<EventView>,
    /// Versions of the pods that events are about.
    pods: BoardReader<PodUid, DesiredPod>,
    memory: Memory,
    lines: VecDeque<Arc<EventEntry>>,
    dropped: u64,
    sink: Option<Sink>,
    /// A request is under way, or the pause after a failure.
    delivering: bool,
}

impl EventRecorder {
    /// A fresh instance; what the view shows is taken over when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::EventRecorder>, config: Config, memory: Memory) -> Self {
        Self {
            config,
            view: crew.publisher(),
            pods: crew.board(),
            memory,
            lines: VecDeque::new(),
            dropped: 0,
            sink: None,
            delivering: false,
        }
    }

    /// Delivers events to the API server too.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// The newest occurrence is last; an older line of the same key gives way to it.
    fn keep(&mut self, line: EventEntry) {
        if line.count > 1 {
            let key = key_of(&line);
            // The line is most likely a recent one.
            if let Some(at) = self.lines.iter().rposition(|l| l.reason == line.reason && key_of(l) == key) {
                self.lines.remove(at);
            }
        }
        self.lines.push_back(Arc::new(line));
        while self.lines.len() > self.config.lines.max(1) {
            self.lines.pop_front();
        }
    }

    fn publish(&self) {
        let undelivered = self.sink.as_ref().map_or(0, |s| s.outbox.lock().lost());
        self.view.publish(EventView { entries: self.lines.clone(), dropped: self.dropped, undelivered });
    }

    /// Sends what waits, one request at a time, in order.
    fn deliver(&mut self, ctx: &mut Ctx<Self>) {
        let Some(sink) = self.sink.as_ref().filter(|_| !self.delivering) else { return };
        let Some(request) = sink.outbox.lock().head().map(|event| sink.request(event)) else { return };
        self.delivering = true;
        let (api, faults) = (sink.api.clone(), ctx.faults());
        let work = async move {
            faults.hit("before send").await;
            let answer = api.call(request).await;
            faults.hit("after send").await;
            answer
        };
        ctx.run(work, |act: &mut Self, answer, ctx| act.delivered(answer.err().as_ref(), ctx));
    }

    fn delivered(&mut self, error: Option<&ApiError>, ctx: &mut Ctx<Self>) {
        let Some(sink) = &self.sink else { return };
        let (next, tries) = {
            let mut queue = sink.outbox.lock();
            let next = queue.answered(error.map_or(Ok(()), Err));
            (next, queue.head().map_or(0, |w| w.tries))
        };
        ctx.fault_point("answered");
        match (next, error) {
            (Next::Refused, Some(error)) => {
                tracing::warn!(%error, "an event was not taken by the API server, given up");
                self.publish();
            }
            (Next::Pause, Some(error)) => {
                tracing::debug!(%error, tries, "the API server takes no events now");
                // The first pause is random, so that nodes do not come back in step.
                let pause = if tries <= 1 { RETRY.mul_f64(ctx.rng().f64()) } else { RETRY };
                ctx.after(pause.max(error.retry_after().unwrap_or_default()), |act, ctx| {
                    act.delivering = false;
                    act.deliver(ctx);
                });
                return;
            }
            _ => {}
        }
        self.delivering = false;
        self.deliver(ctx);
    }
}

impl Actor for EventRecorder {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        let before = self.view.get();
        self.lines.clone_from(&before.entries);
        self.dropped = before.dropped;
        self.memory.recall(self.lines.iter().map(|line| &**line));
        self.deliver(ctx);
    }
}
supervised!(EventRecorder);

impl Handler<RecordEvent> for EventRecorder {
    type Result = ();

    fn handle(&mut self, RecordEvent { event, annotations }: RecordEvent, ctx: &mut Ctx<Self>) {
        if event.object == EventObject::Unknown {
            // Filed on anything else it would be told of the wrong one.
            self.dropped += 1;
            return self.publish();
        }
        let clock = ctx.clock();
        match self.memory.judge(&event, Timestamp(clock.unix_nanos()), clock.now()) {
            Verdict::Show(line) => {
                let line = EventEntry { annotations, ..line };
                ctx.fault_point("judged");
                log(&line);
                if let Some(sink) = &self.sink {
                    sink.push(&line, &self.pods);
                }
                self.keep(line);
            }
            Verdict::Drop => self.dropped += 1,
        }
        self.publish();
        ctx.fault_point("published");
        self.deliver(ctx);
    }
}

fn log(line: &EventEntry) {
    let object = match &line.object {
        EventObject::Node => "node".to_owned(),
        EventObject::Unknown => "unknown".to_owned(),
        EventObject::Claim { namespace, name, .. } => format!("claim {namespace}/{name}"),
        EventObject::Pod { namespace, name, field_path, .. } if field_path.is_empty() => format!("{namespace}/{name}"),
        EventObject::Pod { namespace, name, field_path, .. } => format!("{namespace}/{name} {field_path}"),
    };
    let (reason, message, count) = (&line.reason, &line.message, line.count);
    match line.kind {
        EventType::Normal => tracing::info!(target: "event", %object, %reason, count, "{message}"),
        EventType::Warning => tracing::warn!(target: "event", %object, %reason, count, "{message}"),
    }
}
