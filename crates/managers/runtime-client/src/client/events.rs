//! Container events.

use std::pin::Pin;
use std::time::Duration;

use actor::{AsyncContext as _, Ctx};
use futures::{Stream, StreamExt};
use metrics::pleg;
use model::runtime::EventTier;
use model::{PodUid, Timestamp};
use ports::runtime::{EventStream, PodStatuses, RuntimeError, RuntimeEvent, RuntimeEventKind, RuntimeResult};

use super::RuntimeClient;
use crate::requests::{Expectation, Request};
use crate::subscription::{expectation, is_no_news, ours};

/// A runtime whose stream breaks this often in a row has none that is of use (interfaces 7.3).
const FAILURES: u32 = 5;
const RETRY: Duration = Duration::from_millis(500);
/// How many events are taken in one turn.
const BATCH: usize = 64;
/// An id that nobody knows this long after its event was not made by us.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);

type Batches = Pin<Box<dyn Stream<Item = Vec<RuntimeResult<RuntimeEvent>>> + Send>>;

impl RuntimeClient {
    /// Asks for events, of the best tier that the runtime has, and relists once they come: what happened before was not told.
    pub(super) fn subscribe(&mut self, ctx: &mut Ctx<Self>) {
        self.events.current += 1;
        let current = self.events.current;
        let runtime = self.deps.runtime.clone();
        ctx.run(async move { runtime.events().await }, move |this, result, ctx| {
            if this.events.current == current {
                this.subscribed(result, ctx);
            }
        });
    }

    pub(super) fn unsubscribe(&mut self, ctx: &mut Ctx<Self>) {
        self.events.current += 1;
        self.events.failures = 0;
        if let Some(pump) = self.events.pump.take() {
            ctx.cancel_future(pump);
        }
    }

    fn subscribed(&mut self, result: RuntimeResult<EventStream>, ctx: &mut Ctx<Self>) {
        let EventStream { tier, events } = match result {
            Ok(stream) => stream,
            Err(e) => return self.broken(Some(e), ctx),
        };
        self.info.tier = tier;
        tracing::info!(?tier, "container events");
        self.publish();
        if tier != EventTier::Relist {
            pleg::STREAM_SUCCESSES.inc();
            self.pump(Box::pin(events.ready_chunks(BATCH)), ctx);
            self.relist(ctx);
        }
    }

    fn pump(&mut self, mut stream: Batches, ctx: &mut Ctx<Self>) {
        let current = self.events.current;
        let next = async move {
            let batch = stream.next().await;
            (batch, stream)
        };
        let pump = ctx.run(next, move |this, (batch, stream), ctx| {
            if this.events.current != current {
                return;
            }
            this.events.pump = None;
            let Some(batch) = batch else { return this.broken(None, ctx) };
            for event in batch {
                match event {
                    Ok(event) => this.event(event, ctx),
                    Err(e) => return this.broken(Some(e), ctx),
                }
            }
            this.pump(stream, ctx);
        });
        self.events.pump = Some(pump);
    }

    /// The stream failed or ended: relists take over until there is another one.
    fn broken(&mut self, e: Option<RuntimeError>, ctx: &mut Ctx<Self>) {
        self.info.tier = EventTier::Relist;
        if let Some(e) = e.as_ref().filter(|e| e.is_unavailable()) {
            return self.lost(e, ctx);
        }
        self.publish();
        pleg::STREAM_ERRORS.inc();
        self.events.failures += 1;
        let failures = self.events.failures;
        let error = e.map(|e| e.message).unwrap_or_else(|| "stream ended".to_owned());
        tracing::warn!(error, failures, "no container events");
        self.relist(ctx);
        if failures < FAILURES {
            let current = self.events.current;
            ctx.after(RETRY * failures, move |this, ctx| {
                if this.events.current == current && this.link.is_up() {
                    this.subscribe(ctx);
                }
            });
        }
    }

    fn event(&mut self, event: RuntimeEvent, ctx: &mut Ctx<Self>) {
        ctx.fault_point("event");
        self.events.failures = 0;
        if event.at != Timestamp::ZERO {
            let age = Self::now(ctx).nanos_since(event.at);
            pleg::STREAM_LATENCY.observe(Duration::from_nanos(u64::try_from(age).unwrap_or(0)).as_secs_f64());
        }
        let seq = self.next_seq();
        if let Some((uid, statuses)) = event.statuses.as_deref().and_then(ours) {
            self.learn(&uid, statuses, seq);
            self.requests.entry(uid.clone()).or_default().touched = seq;
            let mut statuses = statuses.clone();
            if event.kind == RuntimeEventKind::Deleted {
                // Some runtimes tell before they remove, and carry what is about to go.
                statuses.containers.retain(|c| c.id != event.id);
                self.request(&uid, Request::id(&event.id, Expectation::Gone), ctx);
            }
            if statuses.sandbox.id != event.id || event.kind != RuntimeEventKind::Deleted {
                self.request(&uid, Request::carried(statuses), ctx);
            }
            return;
        }
        let Some(uid) = self.index.uid(&event.id).cloned() else {
            return self.unknown_id(event.id, ctx);
        };
        let expectation = expectation(event.kind);
        let requests = self.requests.get(&uid);
        let starting = requests.is_some_and(|r| r.starting > 0);
        let ending = requests.is_some_and(|r| r.ending.contains(&event.id)) || self.index.is_gone(&event.id);
        // Our own call; its answer brings the inspection, or has brought it.
        if expectation < Expectation::Stopped {
            if starting || self.index.is_own(&event.id) {
                return;
            }
        } else if ending {
            if let Some(requests) = self.requests.get_mut(&uid) {
                requests.touched = seq;
            }
            return;
        }
        let known = self.rows.get(&uid).map(|row| row.pod.clone());
        if is_no_news(expectation, &event.id, known.as_deref()) {
            return;
        }
        self.requests.entry(uid.clone()).or_default().touched = seq;
        self.request(&uid, Request::id(&event.id, expectation), ctx);
    }

    fn learn(&mut self, uid: &PodUid, statuses: &PodStatuses, seq: u64) {
        let sandbox = statuses.sandbox.id.as_str().into();
        self.index.learn_sandbox(&statuses.sandbox.id, uid, seq);
        for c in &statuses.containers {
            self.index.learn_container(&c.id, uid, &sandbox, seq);
        }
    }

    /// Not known: one of ours whose call has not answered yet, or somebody else's, which a relist will show.
    fn unknown_id(&mut self, id: String, ctx: &mut Ctx<Self>) {
        if self.events.unknown.is_empty() {
            ctx.after(UNKNOWN_FOR, |this, ctx| {
                let unknown = std::mem::take(&mut this.events.unknown);
                if unknown.iter().any(|id| this.index.uid(id).is_none()) {
                    this.relist(ctx);
                }
            });
        }
        self.events.unknown.insert(id);
    }
}
