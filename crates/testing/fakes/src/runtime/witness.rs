//! Who is told of what happens.

use std::sync::Arc;

use super::happening::{Happening, What};
use super::state::{FakeContainer, FakeSandbox};
use super::{FakeRuntime, Inner, lock};

impl Inner {
    pub(super) fn happened_to_container(&self, c: &FakeContainer, what: What) {
        let Some(witness) = lock(&self.script).witness.clone() else { return };
        let (uid, pod) = {
            let state = lock(&self.state);
            let of = state.sandboxes.get(&c.sandbox);
            of.map(|s| (s.uid().to_owned(), s.pod().to_owned())).unwrap_or_default()
        };
        let container = Some((c.id.clone(), c.name().to_owned(), c.attempt()));
        witness(&Happening { at: self.now(), sandbox: c.sandbox.clone(), uid, pod, container, what });
    }

    pub(super) fn happened_to_sandbox(&self, s: &FakeSandbox, what: What) {
        let Some(witness) = lock(&self.script).witness.clone() else { return };
        let (uid, pod) = (s.uid().to_owned(), s.pod().to_owned());
        witness(&Happening { at: self.now(), sandbox: s.id.clone(), uid, pod, container: None, what });
    }
}

impl FakeRuntime {
    /// Tells `witness` of all that happens from now on, at once and within the call that does it. It may look at anything.
    pub fn witness(&self, witness: impl Fn(&Happening) + Send + Sync + 'static) {
        lock(&self.inner.script).witness = Some(Arc::new(witness));
    }
}
