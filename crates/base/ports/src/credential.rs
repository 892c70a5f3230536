//! Programs that give credentials for registries (interfaces 8.6).

use std::time::Duration;

use async_trait::async_trait;

/// One run of a plugin.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginCall {
    /// Name of the program in the folder of plugins: one path component.
    pub name: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables on top of this process's own.
    pub env: Vec<(String, String)>,
    /// What it reads from its standard input. May hold a token.
    pub stdin: Vec<u8>,
    /// After this it is killed.
    pub deadline: Duration,
}

// Tokens stay out of logs.
impl std::fmt::Debug for PluginCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PluginCall({:?} {:?})", self.name, self.args)
    }
}

/// Why a plugin gave nothing. Holds what it wrote to its standard error, never its standard output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub String);

/// Runs plugins.
#[async_trait]
pub trait CredentialPlugin: Send + Sync + 'static {
    /// Runs one to its end and answers with its standard output. Dropping the future kills it.
    ///
    /// # Errors
    /// It could not be started, failed, wrote too much, or ran too long.
    async fn run(&self, call: PluginCall) -> Result<Vec<u8>, PluginError>;
}
