//! What this crate needs of pod networks.

use std::path::Path;

use async_trait::async_trait;
use cri_api::v1;
use serde::{Deserialize, Serialize};

mod plugins;

pub use plugins::CniNetworks;

/// Why a pod has no network.
#[derive(Debug, thiserror::Error)]
#[error("network: {0}")]
pub struct NetworkError(pub String);

/// What a pod got of its network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNetwork {
    /// Addresses, the first one first.
    pub ips: Vec<String>,
}

/// Gives networks to pods.
#[async_trait]
pub trait PodNetworks: Send + Sync + 'static {
    /// Whether pods can have one now; `Err`: why not.
    ///
    /// # Errors
    /// No configuration, or a plugin says so.
    async fn ready(&self) -> Result<(), NetworkError>;

    /// Gives the network namespace of a pod a network.
    ///
    /// # Errors
    /// A plugin failed; [`PodNetworks::remove`] undoes what it did.
    async fn add(&self, pod: &str, config: &v1::PodSandboxConfig, namespace: &Path)
    -> Result<PodNetwork, NetworkError>;

    /// Takes it back; also twice, and also after a part of it. The namespace may be gone (`None`).
    ///
    /// # Errors
    /// A plugin failed: to be called again.
    async fn remove(
        &self,
        pod: &str,
        config: &v1::PodSandboxConfig,
        namespace: Option<&Path>,
    ) -> Result<(), NetworkError>;
}

/// No networks: pods on the node's network only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNetwork;

#[async_trait]
impl PodNetworks for NoNetwork {
    async fn ready(&self) -> Result<(), NetworkError> {
        Err(NetworkError("no network is configured: only pods on the node's network run".into()))
    }

    async fn add(&self, _: &str, _: &v1::PodSandboxConfig, _: &Path) -> Result<PodNetwork, NetworkError> {
        self.ready().await.map(|()| PodNetwork::default())
    }

    async fn remove(&self, _: &str, _: &v1::PodSandboxConfig, _: Option<&Path>) -> Result<(), NetworkError> {
        Ok(())
    }
}
