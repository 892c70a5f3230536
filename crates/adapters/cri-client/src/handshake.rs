//! What is asked before anything else (interfaces 7.2, 7.5).

use std::time::Duration;

use cri_api::v1;
use model::node::CgroupDriver;
use ports::runtime::{ContainerRuntime, ImageService, RuntimeError};
use tokio::time::sleep;

use crate::CriClient;

/// RuntimeConfig is asked this often, this far apart.
const CONFIG_TRIES: u32 = 3;
const CONFIG_PAUSE: Duration = Duration::from_secs(2);

/// What the runtime said of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// `containerd`, `cri-o`: the scheme of every container id.
    pub runtime_name: String,
    /// Its own version.
    pub runtime_version: String,
    /// `None`: the runtime does not tell, the configured driver holds.
    pub cgroup_driver: Option<CgroupDriver>,
}

/// Why the node cannot work with this runtime. Start-up fails.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// No acceptable answer to Version.
    #[error("validate CRI v1 runtime API for endpoint {endpoint:?}: {}", .source.go_text())]
    Runtime {
        /// Runtime endpoint.
        endpoint: String,
        /// What the call said.
        source: RuntimeError,
    },
    /// No answer to ImageFsInfo.
    #[error("validate CRI v1 image API for endpoint {endpoint:?}: {}", .source.go_text())]
    Images {
        /// Image endpoint.
        endpoint: String,
        /// What the call said.
        source: RuntimeError,
    },
    /// RuntimeConfig failed for another reason than being absent.
    #[error("get runtime configuration: {}", .0.go_text())]
    Config(#[source] RuntimeError),
    /// A driver that we do not know.
    #[error("runtime uses the unknown cgroup driver {0}")]
    CgroupDriver(i32),
}

impl CriClient {
    /// Checks that both services speak CRI v1, and asks for the cgroup driver.
    ///
    /// # Errors
    /// Whatever makes it impossible to work with this runtime; there is no older protocol to fall back to.
    pub async fn handshake(&self) -> Result<Handshake, HandshakeError> {
        let runtime = |source| HandshakeError::Runtime { endpoint: self.names().runtime.clone(), source };
        let version = self.version().await.map_err(runtime)?;
        let images = |source| HandshakeError::Images { endpoint: self.names().images.clone(), source };
        self.image_fs_info().await.map_err(images)?;
        Ok(Handshake {
            runtime_name: version.runtime_name,
            runtime_version: version.runtime_version,
            cgroup_driver: self.cgroup_driver().await?,
        })
    }

    async fn cgroup_driver(&self) -> Result<Option<CgroupDriver>, HandshakeError> {
        let mut tries = 1;
        let answer = loop {
            match self.runtime_config().await {
                Ok(answer) => break answer,
                Err(e) if e.is_unimplemented() => return Ok(None),
                Err(e) if tries == CONFIG_TRIES => return Err(HandshakeError::Config(e)),
                Err(e) => {
                    tracing::warn!(error = %e, "cannot get the runtime's configuration, trying again");
                    tries += 1;
                    sleep(CONFIG_PAUSE).await;
                }
            }
        };
        let Some(linux) = answer.linux else { return Ok(None) };
        match v1::CgroupDriver::try_from(linux.cgroup_driver) {
            Ok(v1::CgroupDriver::Systemd) => Ok(Some(CgroupDriver::Systemd)),
            Ok(v1::CgroupDriver::Cgroupfs) => Ok(Some(CgroupDriver::Cgroupfs)),
            Err(_) => Err(HandshakeError::CgroupDriver(linux.cgroup_driver)),
        }
    }
}
