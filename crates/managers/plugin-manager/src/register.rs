//! The way of one plugin: asked, checked, installed, told; and the way back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::plugin::PluginSocket;
use csi_api::registration::{PluginInfo, RegistrationStatus};
use model::Timestamp;
use ports::plugin::{PluginError, PluginHandler};

use crate::actor::{PluginManager, Socket, backoff};
use crate::requests::Requests;
use crate::world::Phase;

/// How long a plugin has to say what it is, and to take what became of it (node-and-resources 2.8).
const INFO_DEADLINE: Duration = Duration::from_secs(1);
const NOTIFY_DEADLINE: Duration = Duration::from_secs(5);
/// Most time between two tries to make the CSINode.
const INITIALIZE_MOST: Duration = Duration::from_secs(60);

/// A plugin that may be registered, and by whom.
struct Accepted {
    info: PluginInfo,
    handler: Arc<dyn PluginHandler>,
}

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
        match self.judge(path, info) {
            Ok(accepted) => self.install(path, accepted, ctx),
            Err(error) => self.refuse(path, error, ctx),
        }
    }

    /// Whether a plugin may be registered.
    fn judge(&self, path: &str, mut info: PluginInfo) -> Result<Accepted, String> {
        let kind = &info.r#type;
        let handler = self.handlers.get(kind).cloned().ok_or_else(|| {
            format!("RegisterPlugin error -- no handler registered for plugin type: {kind} at socket {path}")
        })?;
        if info.endpoint.is_empty() {
            path.clone_into(&mut info.endpoint);
        }
        let beside = self.beside(path, kind, &info.name);
        let versions: Vec<&[String]> = beside.iter().map(|(_, versions)| versions.as_slice()).collect();
        let valid = handler.validate(&info, &versions);
        valid.map_err(|e| format!("RegisterPlugin error -- plugin validation failed with err: {e}"))?;
        Ok(Accepted { info, handler })
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

    /// Registers a plugin by its type's handler.
    fn install(&mut self, path: &str, Accepted { info, handler }: Accepted, ctx: &mut Ctx<Self>) {
        self.take_over(path, &info);
        for (other, _) in self.beside(path, &info.r#type, &info.name) {
            // The other one's way back leads over its name, which goes over.
            if let Some(socket) = self.sockets.get_mut(&other) {
                Self::give_up(socket, ctx);
                (socket.row.name, socket.row.registered_at, socket.row.told_of) = (String::new(), None, false);
            }
            self.rest(&other, format!("a newer plugin {} took its place", info.name), ctx);
        }
        let effects = ctx.effects();
        let work = async move {
            effects.hit("install").await;
            handler.register(info).await
        };
        if let Some(socket) = self.sockets.get_mut(path) {
            socket.row.told_of = true;
        }
        let of = path.to_owned();
        let work = ctx.run(work, move |act: &mut Self, done, ctx| act.installed(&of, done, ctx));
        self.begin(path, Phase::Installing, work);
    }

    /// What the API server was told of a plugin is this socket's from now on: the end of one that was refused after that takes nothing
    /// back.
    fn take_over(&mut self, path: &str, info: &PluginInfo) {
        let is_it = |s: &Socket| s.row.told_of && s.row.kind == info.r#type && s.row.name == info.name;
        let others = self.sockets.iter().filter(|(other, s)| *other != path && is_it(s));
        let others: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        for other in others {
            if let Some(socket) = self.sockets.get_mut(&other) {
                socket.row.told_of = false;
            }
            self.post(&other);
        }
    }

    fn installed(&mut self, path: &str, done: Result<(), String>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("installed");
        if let Err(why) = done {
            let error = format!("RegisterPlugin error -- plugin registration failed with err: {why}");
            return self.refuse(path, error, ctx);
        }
        if let Some(socket) = self.sockets.get_mut(path) {
            (socket.row.registered_at, socket.row.told) = (Some(Timestamp(ctx.clock().unix_nanos())), false);
            (socket.row.failures, socket.row.error) = (0, None);
            tracing::info!(socket = path, kind = socket.row.kind, plugin = socket.row.name, "plugin registered");
        }
        self.tell(path, ctx);
        self.show_objects();
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

    /// Takes back what was said of a plugin; it is nobody's from now on.
    pub(crate) fn leave(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        let Some(socket) = self.sockets.get_mut(path) else { return };
        Self::give_up(socket, ctx);
        socket.row.registered_at = None;
        let failures = socket.row.failures;
        let handling = self.handlers.get(&socket.row.kind).map(|handler| handler.deregister(&socket.row.name));
        self.keep_refreshing(ctx);
        let effects = ctx.effects();
        let work = async move {
            effects.hit("leave").await;
            match handling {
                Some(handling) => handling.await,
                None => Ok(()),
            }
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
