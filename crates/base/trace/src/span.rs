//! A piece of work with its beginning, its end and its parent.

use std::borrow::Cow;
use std::future::Future;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::context::Context;
use crate::current::{current, within};
use crate::finished::{Finished, Kind, Value};
use crate::queue::Queue;

/// A span that has not ended yet: it ends when it is dropped. One that is not recorded has a context at most.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Span {
    context: Option<Context>,
    open: Option<Box<Open>>,
}

/// Wall time in nanoseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

struct Open {
    span: Finished,
    queue: Arc<Queue>,
    clock: Clock,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.span.fmt(f)
    }
}

impl Span {
    /// No span.
    pub const fn none() -> Self {
        Self { context: None, open: None }
    }

    pub(crate) const fn unrecorded(context: Context) -> Self {
        Self { context: Some(context), open: None }
    }

    /// `parent`, and whether it is in another process.
    pub(crate) fn recorded(
        context: Context,
        parent: Option<(NonZeroU64, bool)>,
        (name, kind): (Cow<'static, str>, Kind),
        (queue, clock): (Arc<Queue>, Clock),
    ) -> Self {
        let began_ns = u64::try_from(clock()).unwrap_or_default();
        let span = Finished {
            context,
            parent: parent.map(|p| p.0),
            is_remote: parent.is_some_and(|p| p.1),
            name,
            kind,
            began_ns,
            ended_ns: began_ns,
            attributes: Vec::new(),
            error: None,
        };
        Self { context: Some(context), open: Some(Box::new(Open { span, queue, clock })) }
    }

    /// For its children.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        self.context
    }

    /// Somebody will see it.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.open.is_some()
    }

    /// Tells more about it. `value` is not asked for when nobody will see it.
    pub fn set<V: Into<Value>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(open) = &mut self.open {
            open.span.attributes.push((key, value().into()));
        }
    }

    /// The work failed, and why.
    pub fn fail(&mut self, why: impl FnOnce() -> String) {
        if let Some(open) = &mut self.open {
            open.span.error = Some(why());
        }
    }

    /// Runs work that is a part of this. Where nothing is traced it stays a part of whatever it was, which may be a span of another
    /// process.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        within(self.context.or_else(current), work)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // The clock may have been set back meanwhile.
        self.span.ended_ns = self.span.began_ns.max(u64::try_from((self.clock)()).unwrap_or_default());
        let empty = Finished { name: Cow::Borrowed(""), attributes: Vec::new(), error: None, ..self.span };
        self.queue.put(std::mem::replace(&mut self.span, empty));
    }
}
