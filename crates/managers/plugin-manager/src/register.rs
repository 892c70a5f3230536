//! The way of one plugin: asked, checked, installed, told; and the way back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, Effects};
use contract::node::{ClearCsiNodeId, SetCsiNodeId};
use contract::plugin::{CsiDriver, PluginSocket};
use contract::{Crew, PluginManager as Role};
use csi_api::registration::{PluginInfo, RegistrationStatus};
use csi_api::v1::NodeGetInfoResponse;
use metrics::Stopwatch;
use metrics::volumes::observe_call;
use model::Timestamp;
use ports::csi::{CsiNode, CsiResult, DEADLINE, grpc_code};
use ports::plugin::PluginError;

use crate::actor::{PluginManager, Socket, backoff};
use crate::check::{self, Accepted};
use crate::csi_node::DriverInfo;
use crate::requests::Requests;
use crate::world::Phase;

/// How long a plugin has to say what it is, and to take what became of it (node-and-resources 2.8).
const INFO_DEADLINE: Duration = Duration::from_secs(1);
const NOTIFY_DEADLINE: Duration = Duration::from_secs(5);
/// Most time between two tries to make the CSINode.
const INITIALIZE_MOST: Duration = Duration::from_secs(60);

impl PluginManager {
    pub(crate) fn requests(&self) -> Option<Requests> {
        let api = self.deps.api.clone()?;
        Some(Requests { api, node_name: self.config.node_name.clone(), node: self.node.clone() })
    }

    /// Makes the CSINode, before any plugin is registered.
    pub(crate) fn initialize(&mut self, pause: Duration, ctx: &mut Ctx<Self>) {
        let Some(requests) = self.requests() else { return };
        if std::mem::replace(&mut self.initializing, true) {
            return;
        }
        let (turn, effects) = (self.turn.clone(), ctx.effects());
        let work = async move {
            effects.hit("initialize").await;
            let _mine = turn.lock().await;
            requests.initialize().await
        };
        ctx.run(work, move |act: &mut Self, done, ctx| match done {
            Ok(()) => {
                (act.initialized, act.initializing) = (true, false);
                act.take_all(ctx);
            }
            Err(error) => {
                tracing::warn!(error, "the CSINode cannot be made, trying again");
                ctx.after(pause, move |act, ctx| {
                    act.initializing = false;
                    act.initialize((pause * 2).min(INITIALIZE_MOST), ctx);
                });
            }
        });
    }

    /// Asks a plugin what it is.
    pub(crate) fn ask(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        let (deps, effects, socket) = (self.deps.clone(), ctx.effects(), PathBuf::from(path));
        let work = async move {
            effects.hit("ask").await;
            deps.plugins.get_info(&socket, INFO_DEADLINE).await
        };
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, said, ctx| act.asked(&of, said, ctx));
        self.begin(path, Phase::Asking, work);
    }

    fn begin(&mut self, path: &str, phase: Phase, work: actor::SpawnHandle) {
        if let Some(socket) = self.sockets.get_mut(path) {
            (socket.phase, socket.work) = (phase, Some(work));
        }
        self.post(path);
    }

    fn asked(&mut self, path: &str, said: Result<PluginInfo, PluginError>, ctx: &mut Ctx<Self>) {
        let info = match said {
            Ok(info) => info,
            Err(e) => {
                let error = format!(
                    "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket {path}, err: {e}"
                );
                return self.rest(path, error, ctx);
            }
        };
        if let Some(socket) = self.sockets.get_mut(path) {
            (socket.row.kind, socket.row.name) = (info.r#type.clone(), info.name.clone());
            socket.row.versions.clone_from(&info.supported_versions);
        }
        let judged = check::judge(info, Path::new(path), |name| self.version_beside(path, name).map(|(_, v)| v));
        match judged {
            Ok(_) if self.deps.api.is_none() => {
                let why = "error updating Node object with CSI driver node info: error getting kube client";
                self.refuse(path, refused(why), ctx);
            }
            Ok(accepted) => self.install(path, accepted, ctx),
            Err(error) => self.refuse(path, error, ctx),
        }
    }

    /// Tells a plugin why it is not registered.
    fn refuse(&mut self, path: &str, error: String, ctx: &mut Ctx<Self>) {
        let work = self.notify(path, Err(error.clone()), ctx);
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, _told, ctx| act.rest(&of, error, ctx));
        self.begin(path, Phase::Asking, work);
    }

    /// Tells a plugin what became of it. Whether it took it.
    fn notify(
        &self,
        path: &str,
        what: Result<(), String>,
        ctx: &Ctx<Self>,
    ) -> impl Future<Output = Result<(), PluginError>> + 'static {
        let (deps, effects, socket) = (self.deps.clone(), ctx.effects(), PathBuf::from(path));
        let status = RegistrationStatus { plugin_registered: what.is_ok(), error: what.err().unwrap_or_default() };
        async move {
            effects.hit("notify").await;
            let told = deps.plugins.notify(&socket, status, NOTIFY_DEADLINE).await;
            if let Err(error) = &told {
                tracing::warn!(socket = %socket.display(), %error, "the plugin was not told what became of it");
            }
            told
        }
    }

    /// Asks the driver about this node, and tells the API server.
    fn install(&mut self, path: &str, accepted: Accepted, ctx: &mut Ctx<Self>) {
        if let Some((other, _)) = self.version_beside(path, &accepted.name) {
            // The other one has a lower version: its way back leads over the driver's name, which goes over.
            if let Some(socket) = self.sockets.get_mut(&other) {
                Self::give_up(socket, ctx);
                (socket.row.name, socket.row.registered_at, socket.row.told_of) = (String::new(), None, false);
            }
            self.rest(&other, format!("a newer driver {} took its place", accepted.name), ctx);
        }
        let Some(requests) = self.requests() else { return };
        let (deps, crew, turn, effects) = (self.deps.clone(), self.crew.clone(), self.turn.clone(), ctx.effects());
        let (name, endpoint) = (accepted.name.clone(), accepted.endpoint.clone());
        let work = async move {
            effects.hit("install").await;
            let said = node_info(&*deps.csi, &name, &endpoint).await.map_err(|e| e.to_string())?;
            let info = DriverInfo::new(&name, said);
            let _mine = turn.lock().await;
            let (node_id, topology) = (info.node_id.clone(), info.topology.clone());
            let told = crew.call(SetCsiNodeId { driver: name, node_id, topology }).await;
            told.map_err(|e| {
                format!("error updating Node object with CSI driver node info: error updating node: {e}")
            })?;
            effects.hit("install, Node done").await;
            requests.install(&info).await?;
            Ok::<_, String>(info)
        };
        if let Some(socket) = self.sockets.get_mut(path) {
            socket.row.told_of = true;
        }
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, done, ctx| act.installed(&of, accepted, done, ctx));
        self.begin(path, Phase::Installing, work);
    }

    fn installed(&mut self, path: &str, accepted: Accepted, done: Result<DriverInfo, String>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("installed");
        let info = match done {
            Ok(info) => info,
            Err(why) => return self.refuse(path, refused(&why), ctx),
        };
        let now = Timestamp(ctx.clock().unix_nanos());
        // The time, so that no registration has the number of one before a restart.
        self.generation = u64::try_from(now.0).unwrap_or(0).max(self.generation + 1);
        let driver = CsiDriver {
            endpoint: accepted.endpoint,
            versions: accepted.versions,
            registered_at: now,
            generation: self.generation,
            node_id: info.node_id,
            max_volumes: info.max_volumes,
            topology: info.topology,
            object: self.refreshes.objects.get(&accepted.name).cloned(),
            error: None,
        };
        if let Some(socket) = self.sockets.get_mut(path) {
            (socket.row.registered_at, socket.row.told) = (Some(now), false);
            (socket.row.failures, socket.row.error) = (0, None);
        }
        tracing::info!(driver = accepted.name, endpoint = %driver.endpoint.display(), "CSI driver registered");
        // First the socket: a successor that finds it registered tells it, and takes it back when it goes.
        self.tell(path, ctx);
        self.drivers.post(accepted.name, Arc::new(driver));
        self.keep_refreshing(ctx);
        self.take(path, ctx);
    }

    /// Tells a plugin that it is registered.
    fn tell(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        let work = self.notify(path, Ok(()), ctx);
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, told: Result<(), PluginError>, _| {
            let error = told.err().map(|e| {
                format!("RegisterPlugin error -- failed to send registration status at socket {of}, err: {e}")
            });
            if let Some(socket) = act.sockets.get_mut(&of) {
                (socket.row.error, socket.row.told, socket.work) = (error, true, None);
            }
            act.post(&of);
        });
        self.begin(path, Phase::Registered, work);
    }

    /// Tells those that the generation before had registered and not told.
    pub(crate) fn tell_all(&mut self, ctx: &mut Ctx<Self>) {
        let untold =
            |(path, s): (&String, &Socket)| (s.phase == Phase::Registered && !s.row.told).then(|| path.clone());
        let untold: Vec<String> = self.sockets.iter().filter_map(untold).collect();
        for path in untold {
            self.tell(&path, ctx);
        }
    }

    /// Takes back what was said of a driver; it is nobody's from now on.
    pub(crate) fn leave(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        let Some(socket) = self.sockets.get_mut(path) else { return };
        Self::give_up(socket, ctx);
        let (name, failures) = (socket.row.name.clone(), socket.row.failures);
        self.drivers.remove(&name);
        self.keep_refreshing(ctx);
        let (requests, crew, turn, effects) = (self.requests(), self.crew.clone(), self.turn.clone(), ctx.effects());
        let work = async move {
            effects.hit("leave").await;
            let Some(requests) = requests else { return Ok(()) };
            let _mine = turn.lock().await;
            take_back(&requests, &crew, &effects, name).await
        };
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, done, ctx| match done {
            Ok(()) => act.left(&of, ctx),
            Err(error) => {
                tracing::warn!(socket = of, error, "the plugin is gone, and not forgotten yet");
                if let Some(socket) = act.sockets.get_mut(&of) {
                    socket.row.failures = failures.saturating_add(1);
                    socket.row.error = Some(error);
                }
                act.post(&of);
                let timer = ctx.after(backoff(failures), {
                    let of = of.clone();
                    move |act, ctx| act.leave(&of, ctx)
                });
                act.begin(&of, Phase::Leaving, timer);
            }
        });
        self.begin(path, Phase::Leaving, work);
    }

    /// Nothing is left of a driver. Another socket may be there by now.
    fn left(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        ctx.fault_point("left");
        let Some(socket) = self.sockets.get_mut(path) else { return };
        tracing::info!(socket = path, plugin = socket.row.name, "plugin no longer registered");
        let (made_at, inode) = (socket.id.made_at, socket.id.inode);
        socket.row = PluginSocket { made_at, inode, ..PluginSocket::default() };
        (socket.phase, socket.work) = (Phase::Due, None);
        self.take(path, ctx);
    }
}

/// What the API server was told of a driver goes. The caller has the turn.
pub(crate) async fn take_back(
    requests: &Requests,
    crew: &Crew<Role>,
    effects: &Effects,
    driver: String,
) -> Result<(), String> {
    requests.uninstall(&driver).await?;
    effects.hit("leave, CSINode done").await;
    let cleared = crew.call(ClearCsiNodeId { driver }).await;
    cleared.map_err(|e| format!("error removing CSI driver node info from Node object {e}"))
}

/// Asks a driver about this node.
pub(crate) async fn node_info(csi: &dyn CsiNode, driver: &str, endpoint: &Path) -> CsiResult<NodeGetInfoResponse> {
    let watch = Stopwatch::start();
    let said = csi.get_info(endpoint, DEADLINE).await;
    observe_call(driver, "NodeGetInfo", grpc_code(&said), false, &watch);
    said
}

/// As a kubelet says it of a plugin that it could not register.
fn refused(why: &str) -> String {
    format!("RegisterPlugin error -- plugin registration failed with err: {why}")
}
