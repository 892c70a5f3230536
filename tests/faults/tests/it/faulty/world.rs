//! What happens around the pods in a round: objects change, strangers appear, a log grows, images lie about, others ask.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::Wiring;
use contract::image::{ImageFailure, RemoveUnusedImages};
use contract::objects::{FetchServiceAccount, ObjectError};
use contract::plugin::{CsiDriver, PluginSocket, RefreshCsiDriver, RefreshError};
use contract::pod_manager::KillPod;
use contract::pod_worker::KillRequest;
use contract::shutdown::Shutdown;
use contract::stats::{Cadvisor, Resource, Summarise};
use cri_api::v1::PodSandboxMetadata;
use fakes::api::{Matching, Trouble};
use fakes::runtime::{Call, Fault, Mutation, samples};
use model::core::{ConfigMap, Node, Secret};
use model::k8s_openapi::api::storage::v1::CSINode;
use model::userns::UserNamespace;
use ports::host::HostFs;
use ports::journal::Journal;
use serde_json::json;
use sim::{DISK, NODE_NAME, SimNode, World};
use tonic::Code;

use super::cast::{KEPT, TALKS};
use crate::drivers::{self, DRIVER};
use crate::{luns, secs};

/// The log of a container is rotated beyond this, in bytes.
const LOG_SIZE: u64 = 4096;
/// An image that nobody has used for so long goes.
const IMAGE_AGE: Duration = Duration::from_secs(20);
/// Rounds until an unused image must be gone: it is seen in one collection and taken in the next, a minute apart.
const IMAGE_ROUNDS: usize = 5;

/// How often the test asks for what it must be told.
const ATTEMPTS: u32 = 5;

/// A pod that no worker knows, with something mounted that the node cannot unmount: it keeps its cgroup, without processor.
const LEFT: &str = "left-behind";

fn pods() -> PathBuf {
    Path::new(DISK).join("root/pods")
}

fn cgroup_of(uid: &str) -> String {
    format!("/kubepods/besteffort/pod{uid}")
}

/// The world before the daemon starts.
pub(super) fn prepare(world: &mut World) {
    let logs = &mut world.settings.config.container_logs;
    (logs.max_size, logs.monitor_interval) = (Some(LOG_SIZE), secs(5));
    world.settings.config.images.maximum_gc_age = Some(IMAGE_AGE);
    let class = json!({ "metadata": { "name": "special" }, "handler": "special" });
    let api = world.api.as_ref().expect("the node is one of a cluster");
    api.put_json("/apis/node.k8s.io/v1/runtimeclasses/special", class);
    api.put(&secret("late", 0));
    drivers::announce(api);
    drivers::claim(api, KEPT);
    luns::serve(&world.files);
    let disk = pods().join(LEFT).join("volumes/kubernetes.io~csi/disk");
    world.files.create_dir(&disk, 0o755).expect("the disk takes a folder");
    world.files.mount(&disk);
}

fn secret(name: &str, k: usize) -> Secret {
    let data = json!({ "pass": model::k8s_openapi::ByteString(format!("pass{k}").into_bytes()) });
    let object = json!({ "metadata": { "name": name, "namespace": "default" }, "data": data });
    serde_json::from_value(object).expect("a secret")
}

/// The objects that pods have in their volumes are those of round `k` from now on.
pub(super) fn change_objects(node: &SimNode, k: usize) {
    let metadata = json!({ "name": "settings", "namespace": "default" });
    let settings = json!({ "metadata": metadata, "data": { "round": format!("round{k}") } });
    node.api().put(&serde_json::from_value::<ConfigMap>(settings).expect("a config map"));
    node.api().put(&secret("keys", k));
}

/// Whether the volumes of a pod hold the objects of round `k`, and a token.
pub(super) fn has_objects(node: &SimNode, name: &str, k: usize) -> Result<(), String> {
    let uid = node.uid(name).ok_or_else(|| format!("{name} is not desired"))?;
    let volumes = pods().join(uid.as_str()).join("volumes");
    let read = |path: &str| {
        let content = node.world.files.read_file(&volumes.join(path), u64::MAX);
        content.map(|c| String::from_utf8_lossy(&c).into_owned()).map_err(|e| format!("{name}: {}", actor::chain(&e)))
    };
    for (path, wanted) in [
        ("kubernetes.io~configmap/settings/round", format!("round{k}")),
        ("kubernetes.io~secret/keys/pass", format!("pass{k}")),
    ] {
        let found = read(path)?;
        if found != wanted {
            return Err(format!("{name}: {path} holds {found}, not {wanted}"));
        }
    }
    let token = read("kubernetes.io~projected/token/token")?;
    if token.starts_with("token.default.default.") { Ok(()) } else { Err(format!("{name}: its token is {token:?}")) }
}

/// Ids of a pod with users of its own: those of its living sandbox, which its file has too.
pub(super) fn ids_of(node: &SimNode, name: &str) -> Result<UserNamespace, String> {
    let uid = node.uid(name).ok_or_else(|| format!("{name} is not desired"))?;
    let path = pods().join(uid.as_str()).join("userns");
    let file = node.world.files.read_file(&path, u64::MAX).map_err(|e| format!("{name}: {}", actor::chain(&e)))?;
    let told = node.world.runtime.peek(|sandboxes, _| {
        let is_its = |m: &PodSandboxMetadata| m.uid == uid.as_str();
        let living = sandboxes.values().find(|s| s.ready && s.config.metadata.as_ref().is_some_and(is_its))?;
        container_config::user_namespace(&living.config)
    });
    let ids = told.ok_or_else(|| format!("{name} has no sandbox with users of its own"))?;
    if file == volume_plan::userns::file(&ids) { Ok(ids) } else { Err(format!("{name} has {ids:?}, and another file")) }
}

fn stranger(k: usize) -> String {
    format!("stranger{k}")
}

/// A pod appears in the runtime that nobody wants, with a folder and a cgroup.
pub(super) fn add_stranger(node: &SimNode, k: usize) {
    let name = stranger(k);
    let uid = format!("uid-{name}");
    let folder = pods().join(&uid).join("volumes/kubernetes.io~empty-dir/v");
    node.world.files.create_dir(&folder, 0o755).expect("the disk takes a folder");
    node.world.cgroups.put(&cgroup_of(&uid));
    let runtime = node.world.runtime.client();
    tokio::task::spawn_local(async move {
        let config = Some(samples::sandbox(&name, 0));
        let request = cri_api::v1::RunPodSandboxRequest { config, ..Default::default() };
        // The runtime may be in trouble, see `chaos.rs`.
        while runtime.run_pod_sandbox(request.clone()).await.is_err() {
            tokio::time::sleep(secs(1)).await;
        }
    });
}

/// Whether the stranger of round `k` has come, and nothing of it is left.
pub(super) fn stranger_is_gone(node: &SimNode, k: usize) -> Result<(), String> {
    let name = stranger(k);
    let uid = format!("uid-{name}");
    let runtime = &node.world.runtime;
    let subject = format!("ns/{name}");
    let made = |calls: &[Call]| calls.iter().any(|c| c.rpc == "RunPodSandbox" && c.subject == subject);
    if !runtime.peek_calls(made) {
        return Err(format!("{name} has not come yet"));
    }
    if runtime.peek(|sandboxes, _| sandboxes.values().any(|s| s.pod() == name)) {
        return Err(format!("the sandbox of {name} is there"));
    }
    if node.world.cgroups.paths().contains(&cgroup_of(&uid)) {
        return Err(format!("the cgroup of {name} is there"));
    }
    if node.world.has(&pods().join(&uid)) { Err(format!("the folder of {name} is there")) } else { Ok(()) }
}

/// The cgroup of what cannot be unmounted. A manager that has not seen the volume yet takes it away: here it comes back.
pub(super) fn leave_behind(node: &SimNode) {
    node.world.cgroups.put(&cgroup_of(LEFT));
}

/// Whether what cannot be unmounted is untouched, and has no processor.
pub(super) fn is_left_behind(node: &SimNode) -> Result<(), String> {
    if !node.world.has(&pods().join(LEFT).join("volumes/kubernetes.io~csi/disk")) {
        return Err(format!("the volume of {LEFT} is gone"));
    }
    match node.world.cgroups.values(&cgroup_of(LEFT)) {
        Some(values) if values.cpu_shares != Some(2) => Err(format!("{LEFT} has processor time: {values:?}")),
        _ => Ok(()),
    }
}

fn log_that_grows(node: &SimNode) -> Option<PathBuf> {
    let id = node.running_id(TALKS, "app")?;
    node.world.runtime.peek(|_, containers| containers.get(&id).map(|c| PathBuf::from(&c.log_path)))
}

/// A container says more than its log may hold, and the runtime does not open the log anew at the first time.
pub(super) fn grow_log(node: &SimNode) {
    let log = log_that_grows(node).expect("the resident runs");
    let line = [b'x'; 5000];
    node.world.files.append(&log, &line).expect("a log can be written");
    node.world.runtime.inject(Fault::error("ReopenContainerLog", Code::Unknown, "not now").times(1));
}

/// Whether the log is as small as it may be.
pub(super) fn log_is_rotated(node: &SimNode) -> Result<(), String> {
    let log = log_that_grows(node).ok_or_else(|| format!("{TALKS} does not run"))?;
    let size = node.world.files.stat(&log).ok().flatten().map(|facts| facts.size);
    if size.is_some_and(|size| size <= LOG_SIZE) { Ok(()) } else { Err(format!("the log has a size of {size:?}")) }
}

/// The machine runs out of memory, and the kernel kills a process.
pub(super) fn run_out_of_memory(node: &SimNode, k: usize) {
    let end = format!("Out of memory: Killed process {k} (hog) total-vm:7kB");
    node.world.kernel_log.say(&["hog invoked oom-killer: gfp_mask=0xcc0, order=0", &end]);
}

/// Whether all that the kernel said of it was told.
pub(super) fn kills_are_told(node: &SimNode) -> Result<(), String> {
    // A journal that cannot be read tells nothing, and is no fault of who writes to it.
    let Ok(line) = node.world.journal.load("oom/told") else { return Ok(()) };
    let line = String::from_utf8(line.unwrap_or_default()).map_err(|e| e.to_string())?;
    let last = node.world.kernel_log.lines().checked_sub(1).map(|last| last.to_string());
    let told = line.rsplit_once(' ').map(|(_, number)| number.to_owned());
    if told == last { Ok(()) } else { Err(format!("the kernel's log was told up to {told:?}, it has {last:?}")) }
}

/// The way to logind goes and comes again, and its delay is too short once more.
pub(super) fn lose_logind(node: &SimNode) {
    node.world.logind.grant(secs(5), secs(30));
    node.world.logind.set_away(true);
    node.world.logind.set_away(false);
}

/// Whether one lock is held, after the latest loss.
pub(super) fn shutdowns_are_held_back(node: &SimNode) -> Result<(), String> {
    let (held, error) = (node.world.logind.held(), node.wiring().value::<Shutdown>().get().error.clone());
    let granted = node.world.logind.granted();
    let well = held == 1 && error.is_none() && granted == secs(30);
    if well { Ok(()) } else { Err(format!("{held} locks are held, {granted:?} are granted, {error:?}")) }
}

/// An image that nobody uses.
pub(super) fn add_image(node: &SimNode, k: usize) {
    node.world.runtime.add_images(&[format!("unused:{k}").as_str()]);
}

/// Whether the unused image of some rounds ago is gone.
pub(super) fn image_is_collected(node: &SimNode, k: usize) -> Result<(), String> {
    let Some(old) = k.checked_sub(IMAGE_ROUNDS).map(|k| format!("unused:{k}")) else { return Ok(()) };
    if node.world.runtime.has_image(&old) { Err(format!("the image {old} is there")) } else { Ok(()) }
}

/// The API server takes its time over a pod's status: until it has it, the status is in the journal.
pub(super) fn delay_status(node: &SimNode, name: &str) {
    let status = Matching::of("PATCH", format!("{name}-{NODE_NAME}/status"));
    node.api().trouble(status, Trouble::Slow(secs(3)), 1);
}

/// Whether no status waits for the API server.
pub(super) fn no_status_waits(node: &SimNode) -> Result<(), String> {
    // One that is broken, see `chaos.rs`, tells nothing.
    let lines = node.world.journal.keys("status/").unwrap_or_default();
    if lines.is_empty() { Ok(()) } else { Err(format!("the journal has {lines:?}")) }
}

fn passing(k: usize) -> String {
    format!("passing{k}.example")
}

/// The claim of a visitor of round `k`.
pub(super) fn claim_of(k: usize) -> String {
    format!("disk{k}")
}

/// A claim for the next visitor. The volumes of it, of the visitors before and of the resident are attached after a moment.
pub(super) fn change_claims(node: &SimNode, k: usize) {
    drivers::claim(node.api(), &claim_of(k));
    let visitors: Vec<usize> = (k.saturating_sub(2)..=k).collect();
    let claims = visitors.iter().map(|k| claim_of(*k)).chain([KEPT.to_owned()]);
    drivers::attach(node, &claims.collect::<Vec<_>>(), &visitors);
}

/// Whether the volumes are there that residents and visitors have, and no others.
pub(super) fn volumes_are_as_wanted(node: &SimNode, k: usize) -> Result<(), String> {
    drivers::volumes_are(node, &[KEPT.to_owned(), claim_of(k - 1), claim_of(k)])?;
    luns::disks_are(node, &[k - 1, k])
}

/// A CSI driver comes, one is made anew, the one of the last round goes.
pub(super) fn change_plugins(node: &SimNode, k: usize) {
    drivers::comes(node, DRIVER);
    drivers::comes(node, &passing(k));
    let old = drivers::socket(&passing(k - 1));
    if node.world.has(&old) {
        node.world.files.remove_file(&old).expect("the disk gives a socket back");
        node.world.plugins.end(&old);
        node.world.watch.gone("old");
    }
}

/// Whether drivers are registered, told so, and said of on the Node and the CSINode, and no others.
pub(super) fn plugins_are_registered(node: &SimNode, k: usize) -> Result<(), String> {
    let wanted = BTreeSet::from([DRIVER.to_owned(), passing(k)]);
    let rows: BTreeSet<String> = node.wiring().board::<CsiDriver>().snapshot().into_keys().collect();
    let object = node.api().read::<CSINode>(None, NODE_NAME);
    let entries: BTreeSet<String> = object.into_iter().flat_map(|o| o.spec.drivers).map(|d| d.name).collect();
    let annotations = node.api().read::<Node>(None, NODE_NAME).and_then(|n| n.metadata.annotations).unwrap_or_default();
    let ids = annotations.get("csi.volume.kubernetes.io/nodeid").map_or("{}", String::as_str);
    let ids: std::collections::BTreeMap<String, String> = serde_json::from_str(ids).map_err(|e| e.to_string())?;
    let ids: BTreeSet<String> = ids.into_keys().collect();
    for (what, found) in [("rows", rows), ("the CSINode", entries), ("the Node", ids)] {
        if found != wanted {
            return Err(format!("{what}: drivers {found:?}, not {wanted:?}"));
        }
    }
    for name in wanted {
        let told = node.world.plugins.told(&drivers::socket(&name));
        let is_there = node.wiring().board::<PluginSocket>().get(&drivers::socket(&name).display().to_string());
        if is_there.is_none_or(|row| row.registered_at.is_none()) || told.last().is_none_or(|t| !t.plugin_registered) {
            return Err(format!("{name} was not told that it is registered: {told:?}"));
        }
    }
    Ok(())
}

fn networks(k: usize) -> String {
    format!("10.{}.0.0/24", k % 250)
}

/// The cluster gives the node's pods another network.
pub(super) fn change_networks(node: &SimNode, k: usize) {
    node.api().change::<Node>(None, NODE_NAME, |node| {
        let cidr = networks(k);
        let spec = node.spec.get_or_insert_default();
        (spec.pod_cidrs, spec.pod_cidr) = (Some(vec![cidr.clone()]), Some(cidr));
    });
}

/// Whether the runtime knows the network.
pub(super) fn networks_are_told(node: &SimNode, k: usize) -> Result<(), String> {
    let wanted = networks(k);
    let cidr = |call: &Call| match &call.mutation {
        Some(Mutation::UpdateRuntimeConfig(r)) => {
            Some(r.runtime_config.as_ref()?.network_config.as_ref()?.pod_cidr.clone())
        }
        _ => None,
    };
    let told = node.world.runtime.peek_calls(|calls| calls.iter().rev().find_map(cidr));
    if told.as_ref() == Some(&wanted) {
        Ok(())
    } else {
        Err(format!("the runtime knows the network {told:?}, not {wanted}"))
    }
}

/// What others ask, in whose place the test stands: those who scrape (that this world has no statistics is an answer as well),
/// a pull with the token of an account, and the refusal of a pod for which the node has no place.
async fn ask(wiring: &Wiring) -> Result<(), String> {
    let summary = wiring.ask(Summarise { only_cpu_and_memory: false }).await.map(drop);
    let cadvisor = wiring.ask(Cadvisor).await.map(drop);
    let resource = wiring.ask(Resource).await.map(drop);
    summary.and(cadvisor).and(resource).map_err(|e| format!("StatsManager does not answer: {e}"))?;
    let refreshed = wiring.call(RefreshCsiDriver { driver: DRIVER.to_owned() }).await;
    refreshed.map_err(|e: RefreshError| format!("PluginManager does not answer: {e}"))?;
    let stranger = KillPod { uid: "nobody".into(), request: KillRequest::default() };
    let here = wiring.ask(stranger).await.map_err(|e| format!("PodManager does not answer: {e}"))?;
    if here {
        return Err("PodManager ends a pod that is not here".to_owned());
    }
    wiring.call(RemoveUnusedImages).await.map_err(|e: ImageFailure| format!("ImageManager does not answer: {e}"))?;
    let account = FetchServiceAccount { namespace: "default".to_owned(), name: "default".to_owned() };
    wiring.call(account).await.map(drop).map_err(|e: ObjectError| format!("ObjectStore does not answer: {e}"))
}

/// Asks beside the round. An answer that is lost is no matter: whoever asks does it again, see [`answers`].
pub(super) fn ask_beside(node: &SimNode) {
    let wiring = node.wiring().clone();
    tokio::task::spawn_local(async move {
        for _ in 0..ATTEMPTS {
            if ask(&wiring).await.is_ok() {
                return;
            }
            tokio::time::sleep(secs(1)).await;
        }
    });
}

/// Whether who asks is answered.
pub(super) async fn answers(node: &SimNode) -> Result<(), String> {
    ask(node.wiring()).await
}
