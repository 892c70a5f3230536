//! Plugins that register themselves by a socket in the folder `plugins_registry` (node-and-resources 2.8).

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use csi_api::registration::{PluginInfo, RegistrationStatus};

use crate::grpc::Code;

/// A failed call. Displays as a Go client prints it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", .code.go_text(.message))]
pub struct PluginError {
    /// gRPC code.
    pub code: Code,
    /// The plugin's description.
    pub message: String,
}

/// The registration service of all plugins. `socket` is the plugin's in that folder. Each call ends within `deadline`,
/// connecting included; one plugin that hangs costs its own calls only.
#[async_trait]
pub trait PluginRegistration: Send + Sync + 'static {
    /// What the plugin is, and where it serves.
    async fn get_info(&self, socket: &Path, deadline: Duration) -> Result<PluginInfo, PluginError>;
    /// Tells it what became of it.
    async fn notify(&self, socket: &Path, status: RegistrationStatus, deadline: Duration) -> Result<(), PluginError>;
}

/// What a handler has under way.
pub type Handling = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// What becomes of plugins of one type, as a kubelet's own handlers have it: one that is found valid is registered; when its socket
/// goes it is deregistered. For one name these come one after the other. Texts are what the plugin is told, after a prefix.
pub trait PluginHandler: fmt::Debug + Send + Sync + 'static {
    /// Whether the plugin may be registered. Its endpoint is an address, never empty. `beside`: the versions of others of its type that
    /// have its name; when it may be registered, it takes their place.
    ///
    /// # Errors
    /// It may not.
    fn validate(&self, plugin: &PluginInfo, beside: &[&[String]]) -> Result<(), String>;
    /// Registers it. Repeatable. Given up without a word when its socket goes meanwhile: then it is deregistered.
    fn register(&self, plugin: PluginInfo) -> Handling;
    /// Forgets the plugin of this name: nobody gets it from now on. Repeatable; what fails is tried again.
    fn deregister(&self, name: &str) -> Handling;
}
