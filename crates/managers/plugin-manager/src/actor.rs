//! The actor.

use actor::{Actor, Ctx, supervised};
use contract::{Crew, PluginManager as Role};

/// The actor.
#[derive(Debug)]
pub struct PluginManager;

impl Actor for PluginManager {
    type Context = Ctx<Self>;

    fn started(&mut self, _: &mut Ctx<Self>) {
        tracing::debug!("plugins are not registered yet");
    }
}
supervised!(PluginManager);

impl PluginManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(_: &Crew<Role>) -> Self {
        Self
    }
}
