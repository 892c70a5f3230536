//! Plugins that register themselves by a socket in the folder `plugins_registry` (node-and-resources 2.8).

use std::path::Path;
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
