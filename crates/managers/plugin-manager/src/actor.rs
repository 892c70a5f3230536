//! The actor: which sockets there are, and where each is on its way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Class, Ctx, SpawnHandle, supervised};
use contract::board::{BoardPoster, ValueReader};
use contract::node::NodeView;
use contract::plugin::{CsiDriver, PluginSocket};
use contract::{Crew, PluginManager as Role};
use ports::plugin::PluginHandler;

use crate::csi_handler::{CSI_PLUGIN, CsiHandler};
use crate::deps::{Config, Deps};
use crate::periods::Refreshes;
use crate::scan::{self, Found};
use crate::world::{Phase, SocketId, Step, step};

/// The folder is looked at so often for what no watch told.
const LOOK: Duration = Duration::from_secs(10);
/// Between tries (node-and-resources 2.8).
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MOST: Duration = Duration::from_secs(122);

/// A socket that is known.
#[derive(Debug)]
pub(crate) struct Socket {
    /// The one that `phase` is about.
    pub id: SocketId,
    /// The one that the folder has.
    pub there: Option<SocketId>,
    pub phase: Phase,
    /// What is under way for it.
    pub work: Option<SpawnHandle>,
    /// What is posted of it.
    pub row: PluginSocket,
}

impl Socket {
    fn new(id: SocketId) -> Self {
        let row = PluginSocket { made_at: id.made_at, inode: id.inode, ..PluginSocket::default() };
        Self { id, there: Some(id), phase: Phase::Due, work: None, row }
    }
}

/// The actor.
#[derive(Debug)]
pub struct PluginManager {
    pub(crate) crew: Crew<Role>,
    pub(crate) drivers: BoardPoster<String, CsiDriver>,
    pub(crate) rows: BoardPoster<String, PluginSocket>,
    pub(crate) node: ValueReader<NodeView>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    /// By path.
    pub(crate) sockets: BTreeMap<String, Socket>,
    /// Folders that are watched.
    pub(crate) watches: BTreeMap<PathBuf, SpawnHandle>,
    pub(crate) gathering: bool,
    looking: bool,
    look_again: bool,
    /// The folder was cut; told once.
    told_cut: bool,
    /// One writer of the API server's objects at a time, in the order in which they come.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// The API server has the CSINode.
    pub(crate) initialized: bool,
    pub(crate) initializing: bool,
    /// What becomes of plugins, by their types.
    pub(crate) handlers: BTreeMap<String, Arc<dyn PluginHandler>>,
    /// What drivers are asked again.
    pub(crate) refreshes: Refreshes,
}

impl Actor for PluginManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        let csi = CsiHandler {
            crew: self.crew.clone(),
            drivers: self.drivers.clone(),
            csi: self.deps.csi.clone(),
            requests: self.requests(),
            turn: self.turn.clone(),
            effects: ctx.effects(),
            clock: ctx.clock().clone(),
            generation: Arc::default(),
        };
        self.handlers.insert(CSI_PLUGIN.to_owned(), Arc::new(csi));
        self.tell_all(ctx);
        self.look(ctx);
        ctx.every(LOOK, Self::look);
        self.forget_absent_later(ctx);
        self.keep_refreshing(ctx);
        ctx.watch(self.node.subscribe(), |act, view, ctx| {
            if !act.initialized && view.api_uid().is_some() {
                act.initialize(BACKOFF_FIRST, ctx);
            }
        });
    }
}
supervised!(PluginManager);

impl PluginManager {
    /// A fresh instance. What the one before it had registered still is.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let (drivers, rows) = (crew.poster::<CsiDriver>(), crew.poster::<PluginSocket>());
        let sockets = rows.snapshot().into_iter().map(|(path, row)| (path, recovered(&row))).collect();
        Self {
            drivers,
            rows,
            node: crew.value(),
            crew,
            config,
            handlers: deps.handlers.clone(),
            deps,
            sockets,
            watches: BTreeMap::new(),
            gathering: false,
            looking: false,
            look_again: false,
            told_cut: false,
            turn: Arc::default(),
            initialized: false,
            initializing: false,
            refreshes: Refreshes::default(),
        }
    }

    /// Looks at the folder; when that is being done, once more afterwards.
    pub(crate) fn look(&mut self, ctx: &mut Ctx<Self>) {
        self.look_again = self.looking;
        if std::mem::replace(&mut self.looking, true) {
            return;
        }
        let (config, fs, effects) = (self.config.clone(), self.deps.fs.clone(), ctx.effects());
        let work = async move {
            effects.hit("look").await;
            effects.blocking(Class::HostFiles, move || scan::scan(&*fs, &config.registry)).await
        };
        ctx.run(work, |act: &mut Self, found, ctx| {
            act.looking = false;
            match found {
                Ok(found) => act.looked(found, ctx),
                Err(e) => tracing::warn!(error = %actor::chain(&e), "plugins cannot be looked for"),
            }
            if std::mem::take(&mut act.look_again) {
                act.look(ctx);
            }
        });
    }

    fn looked(&mut self, found: Found, ctx: &mut Ctx<Self>) {
        if found.cut && !std::mem::replace(&mut self.told_cut, true) {
            tracing::warn!("the folder of plugins holds too much, some of it is left out");
        }
        // What came into a folder before it was watched is seen by another look.
        self.look_again |= self.watch(&found.folders, ctx);
        for (path, socket) in &mut self.sockets {
            socket.there = found.sockets.get(path).copied();
        }
        for (path, id) in found.sockets {
            self.sockets.entry(path).or_insert_with(|| Socket::new(id));
        }
        self.take_all(ctx);
    }

    /// Does for each socket what there is to do.
    pub(crate) fn take_all(&mut self, ctx: &mut Ctx<Self>) {
        let paths: Vec<String> = self.sockets.keys().cloned().collect();
        for path in paths {
            self.take(&path, ctx);
        }
    }

    /// Does for one socket what there is to do.
    pub(crate) fn take(&mut self, path: &str, ctx: &mut Ctx<Self>) {
        let ready = self.initialized || self.deps.api.is_none();
        let Some(socket) = self.sockets.get_mut(path) else { return };
        match step(socket.phase, socket.id, socket.there, socket.row.told_of) {
            Step::Nothing => {}
            Step::Ask if !ready => self.post(path),
            Step::Ask => self.ask(path, ctx),
            Step::Leave => self.leave(path, ctx),
            Step::Forget => {
                Self::give_up(socket, ctx);
                self.sockets.remove(path);
                self.rows.remove(&path.to_owned());
            }
            Step::Restart(there) => {
                Self::give_up(socket, ctx);
                *socket = Socket::new(there);
                self.take(path, ctx);
            }
        }
    }

    /// Ends what is under way for a socket.
    pub(crate) fn give_up(socket: &mut Socket, ctx: &mut Ctx<Self>) {
        if let Some(work) = socket.work.take() {
            ctx.cancel_future(work);
        }
    }

    /// Tells readers of a socket as it is now.
    pub(crate) fn post(&self, path: &str) {
        if let Some(socket) = self.sockets.get(path) {
            let row = Arc::new(socket.row.clone());
            if self.rows.get(&path.to_owned()).as_deref() != Some(&*row) {
                self.rows.post(path.to_owned(), row);
            }
        }
    }

    /// A try failed; another one follows after a while, longer each time.
    pub(crate) fn rest(&mut self, path: &str, error: String, ctx: &mut Ctx<Self>) {
        let Some(socket) = self.sockets.get_mut(path) else { return };
        tracing::warn!(socket = path, error, "the plugin is not registered");
        let wait = backoff(socket.row.failures);
        socket.phase = Phase::Resting;
        socket.row.failures = socket.row.failures.saturating_add(1);
        socket.row.error = Some(error);
        self.post(path);
        let of = path.to_owned();
        let timer = ctx.after(wait, move |act: &mut Self, ctx| {
            if let Some(socket) = act.sockets.get_mut(&of).filter(|s| s.phase == Phase::Resting) {
                (socket.phase, socket.work) = (Phase::Due, None);
                act.take(&of, ctx);
            }
        });
        if let Some(socket) = self.sockets.get_mut(path) {
            socket.work = Some(timer);
        }
        // It may be another one by now.
        self.take(path, ctx);
    }

    /// Other sockets that stand for the plugin of this type and name, with its versions there.
    pub(crate) fn beside(&self, path: &str, kind: &str, name: &str) -> Vec<(String, Vec<String>)> {
        let claims = |s: &Socket| matches!(s.phase, Phase::Installing | Phase::Registered | Phase::Leaving);
        let is_it = |s: &Socket| s.row.kind == kind && s.row.name == name;
        let others = self.sockets.iter().filter(|(other, s)| *other != path && is_it(s) && claims(s));
        others.map(|(other, s)| (other.clone(), s.row.versions.clone())).collect()
    }
}

/// After so many failures.
pub(crate) fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(BACKOFF_MOST)
}

/// A socket as the generation before left it. One that was on its way begins anew.
fn recovered(row: &PluginSocket) -> Socket {
    let id = SocketId { made_at: row.made_at, inode: row.inode };
    let phase = if row.registered_at.is_some() { Phase::Registered } else { Phase::Due };
    Socket { id, there: Some(id), phase, work: None, row: row.clone() }
}
