//! Who begins spans: one for the process, from its start to its end.

use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::{Arc, OnceLock};

use crate::context::Context;
use crate::current::current;
use crate::finished::Kind;
use crate::queue::Queue;
use crate::sampler::Sampler;
use crate::span::{Clock, Span};

static TRACER: OnceLock<Tracer> = OnceLock::new();

struct Tracer {
    sampler: Sampler,
    queue: Arc<Queue>,
    clock: Clock,
}

/// Traces from now on; what ends goes to `queue`. The first one of a process wins; whether this is it.
pub fn install(sampler: Sampler, queue: Arc<Queue>, clock: Clock) -> bool {
    TRACER.set(Tracer { sampler, queue, clock }).is_ok()
}

/// Whether there is anything to do for traces.
#[must_use]
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// A span of this process in the current trace, when that is recorded. It begins no trace.
pub fn child(name: &'static str) -> Span {
    match (TRACER.get(), current()) {
        (Some(tracer), Some(parent)) if parent.sampled => {
            tracer.span(name.into(), Kind::Internal, Some((parent, false)))
        }
        // Its children are children of what it would be a child of.
        (_, parent) => parent.map_or(Span::none(), Span::unrecorded),
    }
}

/// A span in the current trace, or in one that begins with it.
pub fn span(name: impl FnOnce() -> Cow<'static, str>, kind: Kind) -> Span {
    let Some(tracer) = TRACER.get() else { return Span::none() };
    tracer.span(name(), kind, current().map(|c| (c, false)))
}

/// A span with which a trace begins here, unless `remote` says that it began elsewhere.
pub fn root(name: impl FnOnce() -> Cow<'static, str>, kind: Kind, remote: Option<Context>) -> Span {
    let Some(tracer) = TRACER.get() else { return Span::none() };
    tracer.span(name(), kind, remote.map(|c| (c, true)))
}

/// Runs work with which a trace begins here.
pub fn whole<F: Future>(name: &'static str, work: F) -> impl Future<Output = F::Output> + use<F> {
    let span = root(|| name.into(), Kind::Internal, None);
    async move { span.run(work).await }
}

impl Tracer {
    /// `parent`, and whether it is in another process.
    fn span(&self, name: Cow<'static, str>, kind: Kind, parent: Option<(Context, bool)>) -> Span {
        let trace = parent.map_or_else(new_trace, |(p, _)| p.trace);
        let sampled = self.sampler.takes(trace, parent.map(|p| p.0));
        let context = Context { trace, span: new_span(), sampled };
        if !sampled {
            return Span::unrecorded(context);
        }
        let parent = parent.map(|(p, remote)| (p.span, remote));
        Span::recorded(context, parent, (name, kind), (self.queue.clone(), self.clock.clone()))
    }
}

fn new_trace() -> NonZeroU128 {
    NonZeroU128::new(fastrand::u128(..)).unwrap_or(NonZeroU128::MIN)
}

fn new_span() -> NonZeroU64 {
    NonZeroU64::new(fastrand::u64(..)).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests;
