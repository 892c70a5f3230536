//! What an effect outside of a turn takes along.

use super::{Blocking, Class};
use crate::faults::FaultHandle;
use crate::unattended::caught;
use std::fmt;
use std::panic::resume_unwind;

/// Blocking work ended in a panic; its words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkPanicked(String);

/// The way of an effect to the outside: blocking work, and the fault points of its actor. Cheap to clone.
#[derive(Clone)]
pub struct Effects {
    blocking: Blocking,
    faults: FaultHandle,
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Effects").field(&self.faults.record().name).finish()
    }
}

impl Effects {
    pub(crate) fn new(blocking: Blocking, faults: FaultHandle) -> Self {
        Effects { blocking, faults }
    }

    /// Runs `work` on a thread of that class, when one is free. Dropped before that, the work is not begun; dropped later,
    /// it goes on and its output is lost.
    ///
    /// # Panics
    /// When `work` does, with its words and place.
    pub async fn blocking<R: Send + 'static>(&self, class: Class, work: impl FnOnce() -> R + Send + 'static) -> R {
        match self.blocking.run(class, self.faults.record(), work).await {
            Ok(out) => out,
            Err(caught) => resume_unwind(Box::new(caught)),
        }
    }

    /// As [`Effects::blocking`], for work whose input may be bad enough to make it panic, over and over.
    ///
    /// # Errors
    /// When it panics, which is logged.
    pub async fn attempt<R: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, WorkPanicked> {
        self.blocking.run(class, self.faults.record(), work).await.map_err(|caught| {
            let actor = &self.faults.record().name;
            tracing::error!(target: "actor", %actor, class = class.name(), cause = %caught.cause,
                at = caught.location.as_deref(), "blocking work panicked");
            WorkPanicked(caught.cause)
        })
    }

    /// As [`Effects::blocking`], for nobody: begun now or as soon as a thread is free, even when the actor ends meanwhile.
    /// A panic is logged and counted. The caller bounds how many of these it starts.
    pub fn start(&self, class: Class, work: impl FnOnce() + Send + 'static) {
        use futures::FutureExt;
        let this = self.clone();
        let record = self.faults.record().clone();
        let begun = caught(record, class.name(), async move { this.blocking(class, work).await });
        // In simulated time it is over after this.
        let mut begun = Box::pin(begun);
        if begun.as_mut().now_or_never().is_none() {
            tokio::spawn(begun);
        }
    }

    /// See [`FaultHandle::hit`].
    pub async fn hit(&self, point: &'static str) {
        self.faults.hit(point).await;
    }

    /// Fault points alone.
    pub fn faults(&self) -> &FaultHandle {
        &self.faults
    }
}
