//! Who is tried.

use std::sync::Arc;

use actor::Kernel;
use contract::{Role, Wiring};
use fakes::MemoryJournal;
use futures::future::LocalBoxFuture;

use crate::outcome::Outcome;
use crate::outside::Outside;

/// Where a manager takes its place.
pub struct Place {
    /// Runs the suite's own actors, and those of a manager in this process.
    pub kernel: Kernel,
    /// Routes and boards.
    pub wiring: Wiring,
    /// The node's journal.
    pub journal: Arc<MemoryJournal>,
    /// What the manager itself reaches outside.
    pub outside: Outside,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Place")
    }
}

/// A manager that can be tried.
pub trait Subject<R: Role>: Send + Sync {
    /// As reports name it.
    fn name(&self) -> String;
    /// It lives on the real clock only.
    fn is_real(&self) -> bool;
    /// Each case has a process of its own of it.
    fn is_new(&self) -> bool {
        true
    }
    /// How many cases may be played at a time.
    fn at_once(&self) -> usize;
    /// A fresh one takes the place, and knows what whoever had it was told and should remember.
    fn begin<'a>(&'a self, place: &'a Place) -> LocalBoxFuture<'a, Outcome<Box<dyn Served>>>;
}

/// A manager that has the place.
pub trait Served {
    /// Ends it in the middle of what it does, as a bug or a signal would, and waits until its successor serves.
    fn crash(&self) -> LocalBoxFuture<'_, Outcome>;
    /// Ends it for good.
    fn end(&self) -> LocalBoxFuture<'_, ()>;
    /// What it did that no manager may, whatever the case.
    fn misdeeds(&self) -> Vec<String>;
}
