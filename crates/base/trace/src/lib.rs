//! Distributed traces: spans, the context that joins them, and the queue from which they are sent.
//!
//! Nothing is traced until [`install`] was called: then a span is an empty value, a context is none, and what carries one
//! from actor to actor copies some bytes of zeros. No thread, no task, no allocation.
//!
//! A context is current while a piece of work runs that [`within`] was told of. The kernel carries it with an ask into
//! the turn that handles it, and into the futures of its answer. A tell carries none: what it sets off belongs to nobody's trace.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod context;
mod current;
mod finished;
mod queue;
mod sampler;
mod span;
mod tracer;

pub use context::Context;
pub use current::{Entered, current, enter, within};
pub use finished::{Finished, Kind, Value};
pub use queue::{Limits, Queue};
pub use sampler::Sampler;
pub use span::{Clock, Span};
pub use tracer::{child, install, is_on, root, span, whole};
