//! Pod sandboxes. One is made in steps; each step has an undo that may be done again and after half of the step, so that a failed
//! beginning, a stop, a removal and what a crash left are all taken down by the same function.
//!
//! | step | undo |
//! |---|---|
//! | record on the disk (before all that outlives this process) | removed last |
//! | cgroup of the sandbox | emptied and removed |
//! | folders, `resolv.conf`, `hosts`, `hostname`, `/dev/shm` | unmounted; folders removed with the sandbox |
//! | supervisor, which makes the namespaces | told to end, or killed with its cgroup; mounts of namespaces go |
//! | network | plugins take it back |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cri_api::v1;
use host_linux::{LinuxFs, LinuxMounts};
use pod_supervisor::wire::Request;
use pod_supervisor::{NAMESPACE_FILES, NAMESPACES, NamespacePlan, PLAN, PodPlan, record};
use ports::host::{CgroupFs, HostFs, Mounter};
use tracing::{info, warn};

use crate::blocking::Class;
use crate::error::{At, Done, RuntimeError};
use crate::handlers::Handler;
use crate::network::PodNetwork;
use crate::records::{PodStage, SandboxRecord};
use crate::runtime::{Pod, Runtime, new_id};
use crate::supervisor::{self, Starting, SupervisorError};
use crate::{cgroups, container, follow, joining, pod_files, users};

/// What a kubelet gives the process that holds a sandbox: it goes last.
const OOM_SCORE_ADJ: i32 = -998;

/// Makes a pod sandbox; answers its id.
pub(crate) async fn run(rt: &Arc<Runtime>, config: v1::PodSandboxConfig, handler: String) -> Done<String> {
    check(&config, rt.handlers.find(&handler)?, &rt.options.run)?;
    let pod = rt.add_pod(SandboxRecord {
        id: new_id(),
        stage: PodStage::Starting,
        created_at: pod_supervisor::now(),
        runtime_handler: handler,
        network: PodNetwork::default(),
        network_removed: false,
        config,
    })?;
    let _work = pod.work.lock().await;
    match make(rt, &pod).await {
        Ok(()) => {
            rt.happened(&pod.id, &pod.id, v1::ContainerEventType::ContainerCreatedEvent);
            rt.happened(&pod.id, &pod.id, v1::ContainerEventType::ContainerStartedEvent);
            Ok(pod.id.clone())
        }
        Err(e) => {
            // What cannot be undone now stays known as a sandbox that is not ready: whoever asked removes it.
            let undone = async {
                take_down(rt, &pod).await?;
                erase(rt, &pod).await
            };
            if let Err(undo) = undone.await {
                warn!(pod = pod.id, "a sandbox that failed is not gone yet: {undo}");
            }
            Err(e)
        }
    }
}

/// What this runtime does not do is refused before anything is made.
fn check(config: &v1::PodSandboxConfig, handler: &Handler, run: &Path) -> Done<()> {
    if config.metadata.is_none() {
        return Err(RuntimeError::Refused("sandbox config must include metadata".into()));
    }
    if users::range(config)?.is_some() {
        users::refuse_shared_processes(config)?;
        users::check(&handler.node, run)?;
    }
    crate::sysctls::check(config)
}

async fn make(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Done<()> {
    // The first one with the pod's name on the disk: by it the rest is found again.
    for dir in [rt.options.containers_root(&pod.id), rt.options.pod_run(&pod.id).join("c")] {
        crate::options::private_dir(&dir)?;
    }
    let mut starting = supervisor::begin(&rt.supervisor, &rt.options.pod_run(&pod.id))?;
    let (shared, this) = (Arc::clone(rt), pod.record());
    let procs = rt.blocking.run(Class::State, move || begin(&shared, &this)).await?;
    if rt.options.systemd_cgroup {
        bring_up_in_scope(rt, pod, starting, procs).await?;
    } else {
        bring_up(rt, pod, &mut starting, procs.clone()).await?;
        joining::check(rt, pod, starting.pid(), procs).await?;
    }
    let ready = pod.change(|r| r.stage = PodStage::Ready);
    // In memory: it must outlive this process, but not the machine. The record on the disk follows.
    ready.write_ready(&rt.options)?;
    let (shared, written) = (Arc::clone(rt), Arc::clone(pod));
    tokio::spawn(async move {
        if let Err(e) = shared.write_pod(&written).await {
            warn!(pod = written.id, "that it is ready is not in its record yet: {e}");
        }
    });
    follow::spawn(rt, pod, None);
    info!(pod = pod.id, "sandbox is ready");
    Ok(())
}

/// The record and the cgroup; answers where the supervisor is moved into it.
fn begin(rt: &Runtime, sandbox: &SandboxRecord) -> Done<Vec<PathBuf>> {
    sandbox.write(&rt.options)?;
    let Some(cgroup) = cgroups::of_sandbox(rt, sandbox) else { return Ok(Vec::new()) };
    cgroups::make_for_supervisor(rt, &cgroup)
}

/// All that a supervisor needs, and its network.
async fn bring_up(rt: &Arc<Runtime>, pod: &Pod, starting: &mut Starting, procs: Vec<PathBuf>) -> Done<()> {
    let record = pod.record();
    let (shared, this) = (Arc::clone(rt), record.clone());
    rt.blocking.run(Class::State, move || prepare(&shared, &this, procs)).await?;
    starting.ready().await?;
    if !record.host_network() {
        let namespace = rt.options.pod_run(&pod.id).join(NAMESPACES).join("net");
        let network = rt.networks.add(&pod.id, &record.config, &namespace).await?;
        pod.change(|r| r.network = network);
    }
    Ok(())
}

/// The same while systemd makes its scope, with it. The scope takes as long as it takes.
async fn bring_up_in_scope(rt: &Arc<Runtime>, pod: &Pod, mut starting: Starting, procs: Vec<PathBuf>) -> Done<()> {
    let (pid, to) = (starting.pid(), procs.clone());
    let join = joining::run(Arc::clone(rt), move |rt| cgroups::join(rt, pid, &to));
    if pod.record().namespaces().pid() == v1::NamespaceMode::Pod {
        // Process 1 of the pod has to be in its cgroup from its beginning.
        join.await?;
        return bring_up(rt, pod, &mut starting, procs).await;
    }
    let join = tokio::spawn(join);
    let done = bring_up(rt, pod, &mut starting, procs).await;
    let id = pod.id.clone();
    pod.joins(async move {
        if let Ok(Err(e)) = join.await {
            warn!(pod = id, "its supervisor is not in its cgroup: {e}");
        }
        // Not reaped before: until then its number is nobody else's.
        drop(starting);
    })
    .await;
    done
}

/// Files; last the plan, for which the supervisor waits.
fn prepare(rt: &Runtime, sandbox: &SandboxRecord, cgroup_procs: Vec<PathBuf>) -> Done<()> {
    let options = &rt.options;
    let run = options.pod_run(&sandbox.id);
    users::let_in(sandbox, &[&run, &run.join("c")])?;
    pod_files::write(options, &rt.handlers.node().hostname, sandbox)?;
    if sandbox.namespaces().ipc() == v1::NamespaceMode::Pod {
        pod_files::mount_shm(options, &sandbox.id)?;
    }
    let plan = plan(rt, sandbox, cgroup_procs)?;
    let path = options.pod_run(&sandbox.id).join(PLAN);
    record::write_passing_record(&path, &plan).at("write", &path)
}

fn plan(rt: &Runtime, sandbox: &SandboxRecord, cgroup_procs: Vec<PathBuf>) -> Done<PodPlan> {
    let handler = rt.handlers.find(&sandbox.runtime_handler)?;
    let modes = sandbox.namespaces();
    let network = modes.network() == v1::NamespaceMode::Pod;
    let users = users::range(&sandbox.config)?;
    let sysctls = sandbox.config.linux.as_ref().map(|l| l.sysctls.clone()).unwrap_or_default();
    Ok(PodPlan {
        id: sandbox.id.clone(),
        runtime: handler.program.clone(),
        runtime_root: handler.root.clone(),
        systemd_cgroup: rt.options.systemd_cgroup,
        state: rt.options.containers_root(&sandbox.id),
        namespaces: NamespacePlan {
            network,
            uts: network,
            ipc: modes.ipc() == v1::NamespaceMode::Pod,
            pid: modes.pid() == v1::NamespaceMode::Pod,
            hostname: sandbox.config.hostname.clone(),
            sysctls: sysctls.into_iter().collect(),
            uids: users.into_iter().collect(),
            gids: users.into_iter().collect(),
        },
        cgroup_procs,
        oom_file: cgroups::pod_oom_file(rt, sandbox),
        hierarchies: rt.hierarchies.clone(),
        // Not where the kernel would refuse.
        oom_score_adj: handler.node.lowest_oom_score_adj.is_none().then_some(OOM_SCORE_ADJ),
    })
}

/// Stops a sandbox: its containers, its network, its supervisor. One that is not there is fine.
pub(crate) async fn stop(rt: &Arc<Runtime>, id: &str) -> Done<()> {
    let Some(pod) = rt.find_pod(id) else { return Ok(()) };
    let _work = pod.work.lock().await;
    let was_ready = pod.record().stage == PodStage::Ready;
    take_down(rt, &pod).await?;
    // Of a beginning that failed early there is no folder yet.
    if rt.options.pod_root(id).exists() {
        rt.write_pod(&pod).await?;
    }
    if was_ready {
        rt.happened(id, id, v1::ContainerEventType::ContainerStoppedEvent);
    }
    Ok(())
}

/// Removes a sandbox and its containers, ending what runs. One that is not there is fine.
pub(crate) async fn remove(rt: &Arc<Runtime>, id: &str) -> Done<()> {
    let Some(pod) = rt.find_pod(id) else { return Ok(()) };
    let _work = pod.work.lock().await;
    take_down(rt, &pod).await?;
    erase(rt, &pod).await?;
    rt.happened(id, id, v1::ContainerEventType::ContainerDeletedEvent);
    Ok(())
}

/// Undoes all that runs. The pod's lock is held.
pub(crate) async fn take_down(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Done<()> {
    pod.joined().await;
    // From here on the end of the supervisor is no surprise.
    pod.change(|r| r.stage = PodStage::NotReady);
    crate::records::remove_ready(&rt.options, &pod.id)?;
    for container in rt.containers_of(&pod.id) {
        container::kill(rt, &container).await?;
    }
    let record = pod.record();
    if !record.host_network() && !record.network_removed {
        let namespace = rt.options.pod_run(&pod.id).join(NAMESPACES).join("net");
        let namespace = namespace.exists().then_some(namespace);
        rt.networks.remove(&pod.id, &record.config, namespace.as_deref()).await?;
        pod.change(|r| r.network_removed = true);
    }
    match supervisor::ask_soon(&rt.socket(&pod.id), &pod.id, &Request::End).await {
        Ok(_) | Err(SupervisorError::Gone) => {}
        // What it has started goes with its cgroup, if it is in that.
        Err(e @ SupervisorError::Late) => {
            warn!(pod = pod.id, "it is killed: {e}");
            supervisor::kill(&rt.socket(&pod.id)).await?;
        }
        Err(e) => return Err(e.into()),
    }
    let (shared, record) = (Arc::clone(rt), pod.record());
    rt.blocking.run(Class::State, move || take_down_files(&shared, &record)).await
}

fn take_down_files(rt: &Runtime, sandbox: &SandboxRecord) -> Done<()> {
    if let Some(cgroup) = cgroups::of_sandbox(rt, sandbox) {
        rt.cgroups.remove(&cgroup)?;
    }
    let run = rt.options.pod_run(&sandbox.id);
    for namespace in NAMESPACE_FILES {
        LinuxMounts.unmount(&run.join(NAMESPACES).join(namespace))?;
    }
    Ok(LinuxMounts.unmount(&pod_files::shm(&rt.options, &sandbox.id))?)
}

/// Removes what is left on disks, and forgets the pod. The pod's lock is held.
async fn erase(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Done<()> {
    for container in rt.containers_of(&pod.id) {
        container::remove(rt, &container.id).await?;
    }
    pod.write_no_more().await;
    let (shared, id) = (Arc::clone(rt), pod.id.clone());
    rt.blocking.run(Class::Removal, move || erase_files(&shared, &id)).await?;
    rt.forget_pod(&pod.id);
    Ok(())
}

/// The folders of a pod; the one with the record last. What is still mounted there goes first.
pub(crate) fn erase_files(rt: &Runtime, pod: &str) -> Done<()> {
    for folder in [rt.options.pod_run(pod), rt.options.pod_root(pod)] {
        // The newest first: it may be below or above another one.
        for mounted in LinuxMounts.mounts_below(&folder)?.iter().rev() {
            LinuxMounts.unmount(mounted)?;
        }
    }
    LinuxFs.remove_tree(&rt.options.pod_run(pod))?;
    LinuxFs.remove_tree(&rt.options.pod_root(pod))?;
    Ok(())
}
