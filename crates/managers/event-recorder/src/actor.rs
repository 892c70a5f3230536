//! The actor: judges, keeps the list, logs.

use std::collections::VecDeque;
use std::sync::Arc;

use actor::{Actor, ActorRef, Ctx, Handler, supervised};
use contract::event::{EventEntry, EventHandle, EventView, RecordEvent};
use contract::view::Published;
use model::Timestamp;
use model::event::{EventObject, EventType};

use crate::correlate::{Correlator, Verdict, key_of};

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

/// The actor. Built by a factory that clones the view of its [`EventHandle`].
#[derive(Debug)]
pub struct EventRecorder {
    config: Config,
    view: Published<EventView>,
    correlator: Correlator,
    lines: VecDeque<Arc<EventEntry>>,
    dropped: u64,
}

impl EventRecorder {
    /// A fresh instance; what the view shows is taken over when it starts.
    #[must_use]
    pub fn new(config: Config, view: Published<EventView>) -> Self {
        Self { config, view, correlator: Correlator::default(), lines: VecDeque::new(), dropped: 0 }
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
        self.view.publish(EventView { entries: self.lines.clone(), dropped: self.dropped, undelivered: 0 });
    }
}

impl Actor for EventRecorder {
    type Context = Ctx<Self>;

    fn started(&mut self, _: &mut Ctx<Self>) {
        let before = self.view.get();
        self.lines.clone_from(&before.entries);
        self.dropped = before.dropped;
        self.correlator = Correlator::recovered(self.lines.iter().map(|l| &**l));
    }
}
supervised!(EventRecorder);

/// Routes the message of the contract to `to`.
pub fn connect(handle: &EventHandle, to: &ActorRef<EventRecorder>) {
    handle.record.connect(to);
}

impl Handler<RecordEvent> for EventRecorder {
    type Result = ();

    fn handle(&mut self, RecordEvent { event }: RecordEvent, ctx: &mut Ctx<Self>) {
        let now = Timestamp(ctx.clock().unix_nanos());
        match self.correlator.judge(&event, now) {
            Verdict::Show(line) => {
                ctx.fault_point("judged");
                log(&line);
                self.keep(line);
            }
            Verdict::Drop => self.dropped += 1,
        }
        self.publish();
        ctx.fault_point("published");
    }
}

fn log(line: &EventEntry) {
    let object = match &line.object {
        EventObject::Node => "node".to_owned(),
        EventObject::Pod { namespace, name, field_path, .. } if field_path.is_empty() => format!("{namespace}/{name}"),
        EventObject::Pod { namespace, name, field_path, .. } => format!("{namespace}/{name} {field_path}"),
    };
    let (reason, message, count) = (&line.reason, &line.message, line.count);
    match line.kind {
        EventType::Normal => tracing::info!(target: "event", %object, %reason, count, "{message}"),
        EventType::Warning => tracing::warn!(target: "event", %object, %reason, count, "{message}"),
    }
}
