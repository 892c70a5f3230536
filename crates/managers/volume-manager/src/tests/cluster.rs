//! A node of a cluster with claims: the API server, a driver that is registered, and a test that plays the attach controller.

use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use contract::node::{NodeOrigin, NodeView};
use contract::plugin::CsiDriver;
use contract::volume::{MountVolumes, MountedVolumes, RemovePodDir, UnmountVolumes, VolumeError, VolumesInUse};
use fakes::{FakeApi, Folder};
use model::core::Pod;
use model::{PodUid, Timestamp};
use serde_json::{Value, json};
use volume_plan::names::{attachment_name, handle_hash};

use super::csi::FakeCsi;
use crate::{Config, SeLinux};

use super::mortal::Mortal;
use super::rig::{Bench, config, deps, host, with_spec};

pub(super) const DRIVER: &str = "d.example";

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) host: Folder,
    pub(super) api: FakeApi,
    pub(super) csi: FakeCsi,
    pub(super) bench: Bench,
    kernel: Kernel,
    settings: Config,
}

impl Cluster {
    /// A node with one driver whose volumes need no attachment.
    pub(super) fn start(kernel: &Kernel) -> Self {
        Self::start_with(kernel, |_| {})
    }

    fn start_with(kernel: &Kernel, change: impl FnOnce(&mut Config)) -> Self {
        let host = host();
        let mut settings = config(&host);
        change(&mut settings);
        let (api, csi) = (FakeApi::new(), FakeCsi::on(&host.disk));
        let bench = Self::daemon(kernel, &host, &api, &csi, settings.clone(), None);
        let cluster = Self { host, api, csi, bench, kernel: kernel.clone(), settings };
        cluster.driver(json!({ "attachRequired": false }));
        cluster
    }

    fn daemon(
        kernel: &Kernel,
        host: &Folder,
        api: &FakeApi,
        csi: &FakeCsi,
        settings: Config,
        mortal: Option<Mortal>,
    ) -> Bench {
        let mut deps = deps(host);
        if let Some(mortal) = mortal {
            (deps.fs, deps.mounts) = (Arc::new(mortal.clone()), Arc::new(mortal));
        }
        deps.api = Some(Arc::new(api.clone()));
        deps.csi = Some(Arc::new(csi.clone()));
        let bench = Bench::with(kernel, settings, deps);
        for name in [DRIVER, "other.example", "disk.csi.azure.com"] {
            bench.wiring.put(name.to_owned(), registered(name, 1));
        }
        bench
    }

    /// What the daemon's clock shows.
    pub(super) fn now_ns(&self) -> i64 {
        self.kernel.clock().unix_nanos()
    }

    /// As `kill -9` and a start: all that was in memory is gone.
    pub(super) async fn restart(&mut self) {
        self.restart_as(None).await;
    }

    /// The same; `mortal`: through which the new daemon sees the disk.
    pub(super) async fn restart_as(&mut self, mortal: Option<Mortal>) {
        self.bench.manager.stop();
        self.bench.manager.stopped().await;
        self.bench = Self::daemon(&self.kernel, &self.host, &self.api, &self.csi, self.settings.clone(), mortal);
    }

    /// What the API server says of the driver.
    pub(super) fn driver(&self, spec: Value) {
        self.api.put_driver(DRIVER, spec);
    }

    /// A claim `NAME` that is bound to a volume `pv-NAME`, which the driver calls `h-NAME`.
    pub(super) fn claim(&self, name: &str, spec: Value) {
        self.claim_of(DRIVER, name, spec);
    }

    pub(super) fn claim_of(&self, driver: &str, name: &str, mut spec: Value) {
        let csi = json!({ "driver": driver, "volumeHandle": format!("h-{name}"), "fsType": "ext4" });
        for (key, value) in [("csi", csi), ("accessModes", json!(["ReadWriteOnce"]))] {
            if spec.get(key).is_none() {
                spec[key] = value;
            }
        }
        self.api.put_claim(name, spec, json!({}), json!({}));
    }

    /// The Node as NodeManager shows it.
    pub(super) fn node(&self, in_use: &[&str], attached: &[&str]) {
        let attached: Vec<Value> = attached.iter().map(|n| json!({ "name": n, "devicePath": "" })).collect();
        let status = json!({ "volumesInUse": in_use, "volumesAttached": attached });
        let node = serde_json::from_value(json!({ "metadata": { "name": "n1" }, "status": status })).unwrap();
        let view = NodeView { node: Some(Arc::new(node)), origin: NodeOrigin::Api, ..NodeView::default() };
        self.bench.wiring.set(view);
    }

    pub(super) fn attachment(&self, handle: &str, status: Value) {
        let name = attachment_name(handle, DRIVER, "n1");
        let spec = json!({ "attacher": DRIVER, "nodeName": "n1", "source": {} });
        let object = json!({ "metadata": { "name": name }, "spec": spec, "status": status });
        self.api.put_json(&format!("/apis/storage.k8s.io/v1/volumeattachments/{name}"), object);
    }

    pub(super) async fn mount(&self, pod: &Arc<Pod>) -> Result<Arc<MountedVolumes>, VolumeError> {
        self.bench.wiring.ask(MountVolumes { pod: pod.clone() }).await?
    }

    pub(super) async fn unmount(&self, uid: &str) -> Result<(), VolumeError> {
        self.bench.wiring.ask(UnmountVolumes { uid: PodUid::from(uid) }).await?
    }

    pub(super) async fn remove(&self, uid: &str) -> Result<(), VolumeError> {
        self.bench.wiring.ask(RemovePodDir { uid: PodUid::from(uid) }).await?
    }

    /// What the Node is to say, handles only.
    pub(super) fn in_use(&self) -> Option<Vec<String>> {
        let names = self.bench.wiring.value::<VolumesInUse>().get().names.clone()?;
        let prefix = format!("kubernetes.io/csi/{DRIVER}^");
        Some(names.iter().map(|n| n.trim_start_matches(&prefix).to_owned()).collect())
    }

    /// Nothing of any volume is left on the disk.
    pub(super) fn is_clean(&self) -> bool {
        let staged = self.host.names(format!("plugins/kubernetes.io/csi/{DRIVER}"));
        let pods = self.host.names("pods");
        let of = |p: &String, dir: &str| self.host.names(format!("pods/{p}/{dir}/kubernetes.io~csi")).len();
        let published = pods.iter().map(|p| of(p, "volumes") + of(p, "volumeDevices")).sum::<usize>();
        staged.is_empty() && published == 0 && self.devices().is_empty()
    }

    /// What is left of raw volumes below the drivers' directory, and what is held open.
    pub(super) fn devices(&self) -> Vec<String> {
        let all = "plugins/kubernetes.io/csi/volumeDevices";
        let own = self.host.names(all).into_iter().filter(|name| name != "staging" && name != "publish");
        let shared = ["staging", "publish"].into_iter().flat_map(|dir| self.host.names(format!("{all}/{dir}")));
        let held = self.host.disk.held_devices().into_iter().map(|path| path.display().to_string());
        own.chain(shared).chain(held).collect()
    }

    pub(super) fn stage_dir(&self, handle: &str) -> String {
        format!("plugins/kubernetes.io/csi/{DRIVER}/{}", handle_hash(handle))
    }
}

/// The row of a driver that is registered, for so many times.
pub(super) fn registered(name: &str, generation: u64) -> CsiDriver {
    CsiDriver {
        endpoint: format!("/plugins/{name}/csi.sock").into(),
        versions: vec!["1.0.0".to_owned()],
        registered_at: Timestamp(1),
        generation,
        node_id: "n1".to_owned(),
        max_volumes: None,
        topology: std::collections::BTreeMap::new(),
        object: None,
        error: None,
    }
}

/// Runs a test around a node of a cluster.
pub(super) fn with_cluster(test: impl AsyncFnOnce(Cluster)) {
    actor::testing::run(1, async |kernel| test(Cluster::start(&kernel)).await);
}

/// The same with SELinux.
pub(super) fn with_selinux(every_mode: bool, test: impl AsyncFnOnce(Cluster)) {
    let selinux = SeLinux { files: "system_u:object_r:container_file_t:s0".to_owned(), every_mode };
    with_settings(|settings| settings.selinux = Some(selinux), test);
}

/// The same with other settings.
pub(super) fn with_settings(change: impl FnOnce(&mut Config), test: impl AsyncFnOnce(Cluster)) {
    actor::testing::run(1, async |kernel| test(Cluster::start_with(&kernel, change)).await);
}

pub(super) async fn secs(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

/// A pod whose one container mounts these claims.
pub(super) fn pod_with(uid: &str, claims: &[&str]) -> Arc<Pod> {
    let volume = |c: &&str| json!({ "name": format!("v-{c}"), "persistentVolumeClaim": { "claimName": c } });
    pod_of(uid, claims.iter().map(volume).collect(), json!({}))
}

pub(super) fn pod_of(uid: &str, volumes: Vec<Value>, security: Value) -> Arc<Pod> {
    let mounts: Vec<Value> = volumes.iter().map(|v| json!({ "name": v["name"], "mountPath": "/m" })).collect();
    let containers = json!([{ "name": "app", "volumeMounts": mounts }]);
    with_spec(uid, json!({ "volumes": volumes, "securityContext": security, "containers": containers }))
}

/// A pod whose one container has these claims as devices.
pub(super) fn pod_with_devices(uid: &str, claims: &[&str]) -> Arc<Pod> {
    let volume = |c: &&str| json!({ "name": format!("v-{c}"), "persistentVolumeClaim": { "claimName": c } });
    let device = |c: &&str| json!({ "name": format!("v-{c}"), "devicePath": format!("/dev/{c}") });
    let devices: Vec<Value> = claims.iter().map(device).collect();
    let containers = json!([{ "name": "app", "volumeDevices": devices }]);
    with_spec(uid, json!({ "volumes": claims.iter().map(volume).collect::<Vec<_>>(), "containers": containers }))
}

/// A mount that goes on while the test does.
pub(super) fn spawn(c: &Cluster, pod: &Arc<Pod>) -> tokio::task::JoinHandle<Result<Arc<MountedVolumes>, VolumeError>> {
    let (c, pod) = (c.clone(), pod.clone());
    tokio::task::spawn_local(async move { c.mount(&pod).await })
}
