//! Plugins and CSI drivers that a test plays, by their sockets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use csi_api::registration::{PluginInfo, RegistrationStatus};
use csi_api::v1;
use ports::csi::{CsiError, CsiNode, CsiResult};
use ports::grpc::Code;
use ports::plugin::{PluginError, PluginRegistration};

use crate::{FakeVolumes, MemFs, VolumeCall};

/// How long a driver takes over a volume that it has done its work on: as over a socket, not at once.
const ANSWER: Duration = Duration::from_millis(5);

/// What serves at one socket: a registration, a driver, or both.
#[derive(Clone, Debug, Default)]
pub struct FakeDriver {
    /// What it registers as.
    pub info: PluginInfo,
    /// What its driver says of the node.
    pub node: v1::NodeGetInfoResponse,
    /// What its driver can do.
    pub capabilities: Vec<v1::node_service_capability::rpc::Type>,
    /// What its driver says of each volume.
    pub stats: v1::NodeGetVolumeStatsResponse,
}

impl FakeDriver {
    /// A CSI driver of this name, version 1.0.0, that serves at the socket by which it registers.
    #[must_use]
    pub fn driver(name: &str) -> Self {
        let info = PluginInfo {
            r#type: "CSIPlugin".to_owned(),
            name: name.to_owned(),
            endpoint: String::new(),
            supported_versions: vec!["1.0.0".to_owned()],
        };
        let node = v1::NodeGetInfoResponse { node_id: format!("id-of-{name}"), ..Default::default() };
        Self { info, node, ..Self::default() }
    }
}

/// Trouble with calls of one name at one socket.
#[derive(Clone, Debug)]
pub enum PluginTrouble {
    /// They are refused.
    Fail(Code, String),
    /// They are never answered: the caller's deadline ends them.
    Hang,
}

#[derive(Debug, Default)]
struct State {
    plugins: BTreeMap<PathBuf, FakeDriver>,
    trouble: BTreeMap<(PathBuf, &'static str), PluginTrouble>,
    told: BTreeMap<PathBuf, Vec<RegistrationStatus>>,
    calls: Vec<(PathBuf, &'static str)>,
    volumes: FakeVolumes,
}

/// All plugins of a node.
#[derive(Debug, Default)]
pub struct FakePlugins(Mutex<State>);

impl FakePlugins {
    /// Drivers whose volumes are on this disk.
    #[must_use]
    pub fn on(disk: &MemFs) -> Self {
        Self(Mutex::new(State { volumes: FakeVolumes::on(disk), ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This serves at the socket from now on.
    pub fn serve(&self, socket: &Path, plugin: FakeDriver) {
        self.state().plugins.insert(socket.to_owned(), plugin);
    }

    /// Nobody serves there any more.
    pub fn end(&self, socket: &Path) {
        self.state().plugins.remove(socket);
    }

    /// Trouble with calls of this name (as the protocol has it) there; `None`: no more.
    pub fn trouble(&self, socket: &Path, call: &'static str, trouble: Option<PluginTrouble>) {
        let key = (socket.to_owned(), call);
        match trouble {
            Some(trouble) => self.state().trouble.insert(key, trouble),
            None => self.state().trouble.remove(&key),
        };
    }

    /// What the plugin there was told became of it, in order.
    #[must_use]
    pub fn told(&self, socket: &Path) -> Vec<RegistrationStatus> {
        self.state().told.get(socket).cloned().unwrap_or_default()
    }

    /// How often a call of this name came there.
    #[must_use]
    pub fn calls(&self, socket: &Path, call: &str) -> usize {
        self.state().calls.iter().filter(|(at, name)| at == socket && *name == call).count()
    }

    /// Looks at what drivers have done.
    pub fn volumes<T>(&self, look: impl FnOnce(&FakeVolumes) -> T) -> T {
        look(&self.state().volumes)
    }

    /// The machine starts anew: nothing is mounted any more.
    pub fn reboot(&self) {
        self.state().volumes.reboot();
    }

    async fn call<T>(
        &self,
        socket: &Path,
        name: &'static str,
        deadline: Duration,
        answer: impl FnOnce(&FakeDriver) -> T,
    ) -> Result<T, (Code, String)> {
        let trouble = {
            let mut state = self.state();
            state.calls.push((socket.to_owned(), name));
            state.trouble.get(&(socket.to_owned(), name)).cloned()
        };
        match trouble {
            Some(PluginTrouble::Fail(code, message)) => return Err((code, message)),
            Some(PluginTrouble::Hang) => {
                tokio::time::sleep(deadline).await;
                return Err((Code::DeadlineExceeded, "context deadline exceeded".to_owned()));
            }
            None => {}
        }
        let refused = || format!("connection error: dial unix {}: connect: connection refused", socket.display());
        self.state().plugins.get(socket).map(answer).ok_or_else(|| (Code::Unavailable, refused()))
    }

    async fn csi<T>(
        &self,
        socket: &Path,
        name: &'static str,
        deadline: Duration,
        answer: impl FnOnce(&FakeDriver) -> T,
    ) -> CsiResult<T> {
        self.call(socket, name, deadline, answer).await.map_err(|(code, message)| CsiError::Status { code, message })
    }

    async fn volume(&self, socket: &Path, name: &'static str, deadline: Duration, work: VolumeCall) -> CsiResult<()> {
        self.csi(socket, name, deadline, |_| ()).await?;
        let done = self.state().volumes.carry_out(socket, &work);
        tokio::time::sleep(ANSWER).await;
        done.map_err(|e| CsiError::Status { code: Code::Internal, message: actor::chain(&e) })
    }
}

#[async_trait]
impl PluginRegistration for FakePlugins {
    async fn get_info(&self, socket: &Path, deadline: Duration) -> Result<PluginInfo, PluginError> {
        let answer = self.call(socket, "GetInfo", deadline, |plugin| plugin.info.clone()).await;
        answer.map_err(|(code, message)| PluginError { code, message })
    }

    async fn notify(&self, socket: &Path, status: RegistrationStatus, deadline: Duration) -> Result<(), PluginError> {
        let taken = self.call(socket, "NotifyRegistrationStatus", deadline, |_| ()).await;
        taken.map_err(|(code, message)| PluginError { code, message })?;
        self.state().told.entry(socket.to_owned()).or_default().push(status);
        Ok(())
    }
}

#[async_trait]
impl CsiNode for FakePlugins {
    async fn get_info(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetInfoResponse> {
        self.csi(driver, "NodeGetInfo", deadline, |plugin| plugin.node.clone()).await
    }

    async fn get_capabilities(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetCapabilitiesResponse> {
        use v1::node_service_capability::{Rpc, Type};
        let answer = |plugin: &FakeDriver| {
            let one = |what: &v1::node_service_capability::rpc::Type| v1::NodeServiceCapability {
                r#type: Some(Type::Rpc(Rpc { r#type: (*what).into() })),
            };
            v1::NodeGetCapabilitiesResponse { capabilities: plugin.capabilities.iter().map(one).collect() }
        };
        self.csi(driver, "NodeGetCapabilities", deadline, answer).await
    }

    async fn stage(&self, driver: &Path, request: v1::NodeStageVolumeRequest, deadline: Duration) -> CsiResult<()> {
        self.volume(driver, "NodeStageVolume", deadline, VolumeCall::Stage(request)).await
    }

    async fn unstage(&self, driver: &Path, request: v1::NodeUnstageVolumeRequest, deadline: Duration) -> CsiResult<()> {
        self.volume(driver, "NodeUnstageVolume", deadline, VolumeCall::Unstage(request)).await
    }

    async fn publish(&self, driver: &Path, request: v1::NodePublishVolumeRequest, deadline: Duration) -> CsiResult<()> {
        self.volume(driver, "NodePublishVolume", deadline, VolumeCall::Publish(request)).await
    }

    async fn unpublish(
        &self,
        driver: &Path,
        request: v1::NodeUnpublishVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<()> {
        self.volume(driver, "NodeUnpublishVolume", deadline, VolumeCall::Unpublish(request)).await
    }

    async fn get_volume_stats(
        &self,
        driver: &Path,
        _: v1::NodeGetVolumeStatsRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeGetVolumeStatsResponse> {
        self.csi(driver, "NodeGetVolumeStats", deadline, |served| served.stats.clone()).await
    }

    async fn expand(
        &self,
        driver: &Path,
        request: v1::NodeExpandVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeExpandVolumeResponse> {
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        self.volume(driver, "NodeExpandVolume", deadline, VolumeCall::Expand(request)).await?;
        Ok(v1::NodeExpandVolumeResponse { capacity_bytes })
    }
}
