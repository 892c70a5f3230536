//! A folder in memory, plugins that are played, an API server, and a NodeManager that notes what it is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use contract::node::{ClearCsiNodeId, NodeOrigin, NodeView, SetCsiNodeId};
use contract::plugin::{CsiDriver, PluginSocket};
use contract::{NodeManager, Wiring};
use fakes::{FakeApi, FakeDriver, FakePlugins, FakeWatch, Folder, MemFs, StandIn};
use model::core::Node;
use model::k8s_openapi::api::storage::v1::CSINode;
use ports::api::ApiServer;
use ports::host::{FileKind, HostFs};
use ports::plugin::PluginHandler;

use crate::{Config, Deps, PluginManager};

pub(super) const NODE: &str = "n1";

pub(super) struct Rig {
    pub kernel: Kernel,
    pub wiring: Wiring,
    pub api: FakeApi,
    pub plugins: Arc<FakePlugins>,
    pub watch: Arc<FakeWatch>,
    pub node: StandIn<NodeManager>,
    pub folder: Folder,
    /// Of other types than CSI drivers.
    pub handlers: BTreeMap<String, Arc<dyn PluginHandler>>,
    disk: MemFs,
}

impl Rig {
    /// All but the manager. The Node is registered.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let (wiring, disk) = (Wiring::default(), MemFs::with_dirs(["/k"]));
        let node = StandIn::on(&wiring);
        node.answer(|_: &SetCsiNodeId| Ok(()));
        node.answer(|_: &ClearCsiNodeId| Ok(()));
        let rig = Self {
            kernel: kernel.clone(),
            api: FakeApi::new(),
            plugins: Arc::default(),
            watch: Arc::new(FakeWatch::new(&disk)),
            node,
            folder: Folder::of(&disk, "/k/plugins_registry"),
            handlers: BTreeMap::new(),
            disk,
            wiring,
        };
        rig.registered();
        rig
    }

    /// As [`Rig::new`], with the manager.
    pub(super) fn start(kernel: &Kernel) -> Self {
        let rig = Self::new(kernel);
        rig.start_manager(true);
        rig
    }

    pub(super) fn start_manager(&self, in_cluster: bool) {
        let config = Arc::new(Config { node_name: NODE.to_owned(), registry: PathBuf::from("/k/plugins_registry") });
        let deps = Arc::new(Deps {
            fs: Arc::new(self.disk.clone()),
            watch: self.watch.clone(),
            plugins: self.plugins.clone(),
            csi: self.plugins.clone(),
            handlers: self.handlers.clone(),
            api: in_cluster.then(|| Arc::new(self.api.clone()) as Arc<dyn ApiServer>),
        });
        fakes::start(&self.kernel, &self.wiring, move |crew| PluginManager::new(crew, config.clone(), deps.clone()));
    }

    fn registered(&self) {
        let node = serde_json::json!({ "metadata": { "name": NODE, "uid": "u1" } });
        let node: Node = serde_json::from_value(node).unwrap();
        let view =
            NodeView { node: Some(Arc::new(node)), origin: NodeOrigin::Api, registered: true, ..NodeView::default() };
        self.wiring.crew::<NodeManager>().publisher::<NodeView>().publish(view);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// A plugin makes its socket.
    pub(super) fn comes(&self, name: &str, plugin: FakeDriver) {
        self.plugins.serve(&self.path(name), plugin);
        let folder = self.path(name);
        self.disk.create_dir(folder.parent().unwrap(), 0o750).unwrap();
        self.disk.special(&self.path(name), FileKind::Socket);
        self.watch.written(name);
    }

    /// A plugin takes its socket away.
    pub(super) fn goes(&self, name: &str) {
        self.folder.remove(name);
        self.plugins.end(&self.path(name));
        self.watch.gone(name);
    }

    pub(super) fn socket(&self, name: &str) -> Option<Arc<PluginSocket>> {
        self.wiring.board::<PluginSocket>().get(&self.path(name).display().to_string())
    }

    pub(super) fn driver(&self, name: &str) -> Option<Arc<CsiDriver>> {
        self.wiring.board::<CsiDriver>().get(&name.to_owned())
    }

    /// Names in the CSINode; `None`: there is none.
    pub(super) fn csi_node(&self) -> Option<Vec<String>> {
        let object = self.api.read::<CSINode>(None, NODE)?;
        Some(object.spec.drivers.into_iter().map(|d| d.name).collect())
    }

    /// What the API server says of a driver.
    pub(super) fn announce(&self, name: &str, spec: serde_json::Value) {
        let object = serde_json::json!({ "metadata": { "name": name }, "spec": spec });
        self.api.put_json(&format!("/apis/storage.k8s.io/v1/csidrivers/{name}"), object);
    }

    /// How many volumes of a driver the node may have, as the CSINode says.
    pub(super) fn limit(&self, name: &str) -> Option<i32> {
        let object = self.api.read::<CSINode>(None, NODE)?;
        object.spec.drivers.into_iter().find(|d| d.name == name)?.allocatable?.count
    }

    /// What the plugin was told: registered, or why not.
    pub(super) fn told(&self, name: &str) -> Vec<Result<(), String>> {
        let told = self.plugins.told(&self.path(name)).into_iter();
        told.map(|t| if t.plugin_registered { Ok(()) } else { Err(t.error) }).collect()
    }
}

pub(super) async fn secs(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}
