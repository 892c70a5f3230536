//! The context that is current on this thread.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;

use crate::context::Context;

thread_local! {
    static CURRENT: Cell<Option<Context>> = const { Cell::new(None) };
}

/// The context of the work that runs.
#[must_use]
pub fn current() -> Option<Context> {
    CURRENT.get()
}

/// Until it is dropped another context is current. Stays on its thread.
#[derive(Debug)]
pub struct Entered {
    before: Option<Context>,
    here: PhantomData<*const ()>,
}

/// Makes a context current.
#[must_use = "it is current until this is dropped"]
pub fn enter(context: Option<Context>) -> Entered {
    Entered { before: CURRENT.replace(context), here: PhantomData }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Runs `work` with this context current whenever it is polled, on whatever thread.
pub async fn within<F: Future>(context: Option<Context>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let _entered = enter(context);
        work.as_mut().poll(cx)
    })
    .await
}
