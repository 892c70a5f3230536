//! The services: Identity, Node, Registration.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use csi_api::registration::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};
use csi_api::v1;
use prost::Message;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::config::Config;
use crate::faults::Faults;
use crate::journal::{self, Journal};
use crate::mounts::Done;
use crate::stubs::csi::identity_server::{Identity, IdentityServer};
use crate::stubs::csi::node_server::{Node, NodeServer};
use crate::stubs::registration::registration_server::{Registration, RegistrationServer};
use crate::volumes::Volumes;

/// What the registration said last: registered, or why not.
pub type NotRegistered = Option<Result<(), String>>;

struct Inner {
    config: Config,
    socket: PathBuf,
    faults: Faults,
    journal: Journal,
    volumes: Volumes,
    told: watch::Sender<NotRegistered>,
}

/// A running driver. Its sockets go when it is dropped; what it mounted stays.
pub struct Driver {
    inner: Arc<Inner>,
    sockets: Vec<PathBuf>,
    serving: Vec<JoinHandle<Result<(), tonic::transport::Error>>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Driver({})", self.inner.config.name)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for serving in &self.serving {
            serving.abort();
        }
        for socket in &self.sockets {
            let _gone = std::fs::remove_file(socket);
        }
    }
}

fn listen(socket: &Path) -> io::Result<UnixListenerStream> {
    // That of a driver that was killed.
    let _stale = std::fs::remove_file(socket);
    Ok(UnixListenerStream::new(UnixListener::bind(socket)?))
}

impl Driver {
    /// Serves from now on, and registers itself when it has a registry.
    ///
    /// A client in Go sends the path of a socket as `:authority`, its slashes as `%2F`. That is none unless they stand before
    /// an `@`, and h2 refuses a request with none: hence the names of the sockets.
    ///
    /// # Errors
    /// Its folder or a socket cannot be made.
    pub fn start(config: Config) -> io::Result<Self> {
        std::fs::create_dir_all(&config.folder)?;
        let socket = config.folder.join("csi@node.sock");
        let inner = Arc::new(Inner {
            faults: Faults::new(config.folder.join("control.json")),
            journal: Journal::open(&config.folder.join("log.jsonl"))?,
            volumes: Volumes::new(&config.folder, config.stage),
            told: watch::Sender::new(None),
            socket: socket.clone(),
            config,
        });
        let csi = Server::builder()
            .add_service(IdentityServer::from_arc(inner.clone()))
            .add_service(NodeServer::from_arc(inner.clone()));
        let mut serving = vec![tokio::spawn(csi.serve_with_incoming(listen(&socket)?))];
        let mut sockets = vec![socket];
        if let Some(registry) = &inner.config.registry {
            let socket = registry.join(format!("{}@reg.sock", inner.config.name));
            let server = Server::builder().add_service(RegistrationServer::from_arc(inner.clone()));
            serving.push(tokio::spawn(server.serve_with_incoming(listen(&socket)?)));
            sockets.push(socket);
        }
        Ok(Self { inner, sockets, serving })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.inner.socket
    }

    /// Waits until it is told what became of its registration.
    ///
    /// # Errors
    /// It was not registered: why.
    pub async fn registered(&self) -> Result<(), String> {
        let mut told = self.inner.told.subscribe();
        let last = told.wait_for(Option::is_some).await.map(|told| told.clone());
        last.ok().flatten().unwrap_or_else(|| Err("the driver is gone".to_owned()))
    }

    /// Forgets what it was told, for [`Self::registered`] to wait anew.
    pub fn forget(&self) {
        self.inner.told.send_replace(None);
    }

    /// Waits until a rule says that it ends. Whoever waits ends what runs it: a program, or a runtime of its own.
    pub async fn dies(&self) {
        let mut dies = self.inner.faults.dies.subscribe();
        let _sender_is_ours = dies.wait_for(|dies| *dies).await;
    }
}

impl Inner {
    /// One call: faults around it, a line in the log after it.
    async fn call<Q: Message, T>(
        &self,
        name: &str,
        package: &str,
        request: Request<Q>,
        work: impl AsyncFnOnce(Q) -> Result<T, Status>,
    ) -> Result<Response<T>, Status> {
        let message = match package {
            "pluginregistration" => name.to_owned(),
            _ => format!("{name}Request"),
        };
        let request = request.into_inner();
        let fields = self.journal.fields(&format!("{package}.{message}"), &journal::bytes(&request))?;
        let began = Instant::now();
        let answer = self.faults.around(name, work(request)).await;
        self.journal.note(name, fields, began.elapsed(), answer.as_ref().map(drop));
        answer.map(Response::new)
    }

    /// Work on a volume, on a thread that may wait.
    async fn volume<T: Send + 'static>(&self, work: impl FnOnce(&Volumes) -> Done<T> + Send + 'static) -> Done<T> {
        let volumes = self.volumes.clone();
        spawn_blocking(move || work(&volumes)).await.map_err(|e| Status::internal(e.to_string()))?
    }
}

#[tonic::async_trait]
impl Identity for Inner {
    async fn get_plugin_info(
        &self,
        request: Request<v1::GetPluginInfoRequest>,
    ) -> Result<Response<v1::GetPluginInfoResponse>, Status> {
        let answer = v1::GetPluginInfoResponse {
            name: self.config.name.clone(),
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        };
        self.call("GetPluginInfo", "csi.v1", request, async |_| Ok(answer)).await
    }

    async fn get_plugin_capabilities(
        &self,
        request: Request<v1::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<v1::GetPluginCapabilitiesResponse>, Status> {
        self.call("GetPluginCapabilities", "csi.v1", request, async |_| Ok(Default::default())).await
    }

    async fn probe(&self, request: Request<v1::ProbeRequest>) -> Result<Response<v1::ProbeResponse>, Status> {
        self.call("Probe", "csi.v1", request, async |_| Ok(v1::ProbeResponse { ready: Some(true) })).await
    }
}

#[tonic::async_trait]
impl Node for Inner {
    async fn node_stage_volume(
        &self,
        request: Request<v1::NodeStageVolumeRequest>,
    ) -> Result<Response<v1::NodeStageVolumeResponse>, Status> {
        let work = async |r| self.volume(move |v| v.stage(r)).await.map(|()| v1::NodeStageVolumeResponse {});
        self.call("NodeStageVolume", "csi.v1", request, work).await
    }

    async fn node_unstage_volume(
        &self,
        request: Request<v1::NodeUnstageVolumeRequest>,
    ) -> Result<Response<v1::NodeUnstageVolumeResponse>, Status> {
        let work = async |r| self.volume(move |v| v.unstage(&r)).await.map(|()| v1::NodeUnstageVolumeResponse {});
        self.call("NodeUnstageVolume", "csi.v1", request, work).await
    }

    async fn node_publish_volume(
        &self,
        request: Request<v1::NodePublishVolumeRequest>,
    ) -> Result<Response<v1::NodePublishVolumeResponse>, Status> {
        let work = async |r| self.volume(move |v| v.publish(r)).await.map(|()| v1::NodePublishVolumeResponse {});
        self.call("NodePublishVolume", "csi.v1", request, work).await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<v1::NodeUnpublishVolumeRequest>,
    ) -> Result<Response<v1::NodeUnpublishVolumeResponse>, Status> {
        let work = async |r| self.volume(move |v| v.unpublish(&r)).await.map(|()| v1::NodeUnpublishVolumeResponse {});
        self.call("NodeUnpublishVolume", "csi.v1", request, work).await
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<v1::NodeGetVolumeStatsRequest>,
    ) -> Result<Response<v1::NodeGetVolumeStatsResponse>, Status> {
        let condition = self.config.condition;
        let work = async |r| self.volume(move |v| v.stats(&r, condition)).await;
        self.call("NodeGetVolumeStats", "csi.v1", request, work).await
    }

    async fn node_expand_volume(
        &self,
        request: Request<v1::NodeExpandVolumeRequest>,
    ) -> Result<Response<v1::NodeExpandVolumeResponse>, Status> {
        let done = |capacity_bytes| v1::NodeExpandVolumeResponse { capacity_bytes };
        let work = async |r| self.volume(move |v| v.expand(&r)).await.map(done);
        self.call("NodeExpandVolume", "csi.v1", request, work).await
    }

    async fn node_get_capabilities(
        &self,
        request: Request<v1::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<v1::NodeGetCapabilitiesResponse>, Status> {
        use v1::node_service_capability::{Rpc, Type, rpc};
        let config = &self.config;
        let has = [
            (config.stage, rpc::Type::StageUnstageVolume),
            (config.stats, rpc::Type::GetVolumeStats),
            (config.expand, rpc::Type::ExpandVolume),
            (config.condition, rpc::Type::VolumeCondition),
            (config.single_node_multi_writer, rpc::Type::SingleNodeMultiWriter),
            (config.volume_mount_group, rpc::Type::VolumeMountGroup),
        ];
        let capability =
            |what: rpc::Type| v1::NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: what.into() })) };
        let capabilities = has.into_iter().filter(|(has, _)| *has).map(|(_, what)| capability(what)).collect();
        let answer = v1::NodeGetCapabilitiesResponse { capabilities };
        self.call("NodeGetCapabilities", "csi.v1", request, async |_| Ok(answer)).await
    }

    async fn node_get_info(
        &self,
        request: Request<v1::NodeGetInfoRequest>,
    ) -> Result<Response<v1::NodeGetInfoResponse>, Status> {
        let segments = self.config.topology.clone();
        let answer = v1::NodeGetInfoResponse {
            node_id: self.config.node_id.clone(),
            max_volumes_per_node: self.config.max_volumes,
            accessible_topology: (!segments.is_empty()).then_some(v1::Topology { segments }),
        };
        self.call("NodeGetInfo", "csi.v1", request, async |_| Ok(answer)).await
    }
}

#[tonic::async_trait]
impl Registration for Inner {
    async fn get_info(&self, request: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        let answer = PluginInfo {
            r#type: self.config.kind.clone(),
            name: self.config.name.clone(),
            endpoint: self.socket.display().to_string(),
            supported_versions: self.config.versions.clone(),
        };
        self.call("InfoRequest", "pluginregistration", request, async |_| Ok(answer)).await
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let work = async |told: RegistrationStatus| {
            let told = if told.plugin_registered { Ok(()) } else { Err(told.error) };
            self.told.send_replace(Some(told));
            Ok(RegistrationStatusResponse {})
        };
        self.call("RegistrationStatus", "pluginregistration", request, work).await
    }
}
