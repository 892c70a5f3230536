//! bosun's own managers in processes of their own (`bosun serve`), and rounds in which they take and lose their places under pods
//! that run, start and end. What the pods live on, a folder of manifests or an API server, is a [`Place`].

mod pods;
mod processes;
mod rounds;

use serde_json::Value;

use crate::{Bosun, TestBed};

pub use pods::Lasting;
pub use processes::{Processes, wait_served};
pub use rounds::{kills, swaps};

/// Those that may be served by a process of their own.
pub const MANAGERS: [&str; 4] = ["probes", "status", "images", "volumes"];

/// A node, and the way in which pods come to it.
///
/// All methods panic, with the end of the daemon's log, when what they are for does not come about in time.
pub trait Place {
    /// The daemon, and what it runs in.
    fn parts(&mut self) -> (&Bosun, &mut TestBed);

    /// The daemon.
    fn bosun(&self) -> &Bosun;

    /// What it runs in.
    fn bed(&self) -> &TestBed;

    /// Makes a pod of a name and a spec.
    fn create(&self, name: &str, spec: Value);

    /// Begins to remove a pod.
    fn remove(&self, name: &str);

    /// Waits until the pod, as whoever looks at this place sees it, is as `good` says; answers it.
    fn wait(&self, name: &str, what: &str, good: &dyn Fn(&Value) -> bool) -> Value;

    /// Waits until nobody shows the pod any more: nothing is left to do for it but what is cleared away later.
    fn wait_gone(&self, name: &str);

    /// The pod's name in the runtime, and in the pod itself.
    fn full_name(&self, name: &str) -> String;
}

/// A number that makes a long form of a test from the usual one, from the environment.
///
/// # Panics
/// When the variable is no number.
#[must_use]
pub fn wanted(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
        Err(_) => usual,
    }
}
