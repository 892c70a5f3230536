//! Containers: made, started, stopped, removed.
//!
//! `CreateContainer` makes root file system and spec; the OCI runtime is called by `StartContainer`, as with containerd, so that
//! what cannot be started fails there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use container_spec::{NodeFacts, PodNamespaces, Request as SpecRequest, SeccompChoice, container_spec, seccomp_choice};
use cri_api::v1;
use host_linux::LinuxFs;
use oci_spec::runtime::Spec;
use pod_supervisor::NAMESPACES;
use pod_supervisor::wire::{Answer, Request};
use ports::host::{CgroupFs, HostFs};

use crate::blocking::Class;
use crate::bundle::CONFIG;
use crate::error::{At, Done, RuntimeError};
use crate::images::{ImageError, ImageView};
use crate::records::{ContainerRecord, PodStage, SandboxRecord, User};
use crate::runtime::{Container, Runtime, new_id};
use crate::supervisor::{self, SupervisorError};
use crate::{cdi, cgroups, ends, pod_files, process, status, users};

mod owners;
mod rootfs;
pub(crate) mod volumes;

use volumes::Volumes;

/// How long a killed container may take to be gone.
const KILL_TIME: Duration = Duration::from_secs(30);

/// Makes a container; answers its id.
pub(crate) async fn create(rt: &Arc<Runtime>, pod: &str, mut config: v1::ContainerConfig) -> Done<String> {
    let pod = rt.pod(pod)?;
    let sandbox = pod.record();
    if sandbox.stage != PodStage::Ready {
        return Err(RuntimeError::Refused(format!("sandbox {:?} is not ready", pod.id)));
    }
    if config.metadata.is_none() {
        return Err(RuntimeError::Refused("container config must include metadata".into()));
    }
    let own_users = users::range(&sandbox.config)?.is_some();
    let asked = config.image.as_ref().map(|i| i.image.clone()).unwrap_or_default();
    let images = Arc::clone(&rt.images);
    let look = move || {
        let volumes = Volumes::find(&*images, &mut config.mounts, own_users)?;
        Ok((images.resolve(&asked)?.ok_or(ImageError::NotFound(asked))?, volumes, config))
    };
    let (image, volumes, config) = rt.blocking.run(Class::Images, look).await?;
    let container = rt.add_container(record(&sandbox, config, &image))?;
    let _work = container.work.lock().await;
    let target = target_pid(rt, &container.record())?;
    let shared = (Arc::clone(rt), sandbox, container.record());
    match rt.blocking.run(Class::Making, move || make(&shared.0, &shared.1, shared.2, &image, &volumes, target)).await {
        Ok(made) => {
            container.change(|r| *r = made);
            rt.happened(&container.id, &pod.id, v1::ContainerEventType::ContainerCreatedEvent);
            Ok(container.id.clone())
        }
        Err(e) => {
            let (shared, record) = (Arc::clone(rt), container.record());
            let undone = rt.blocking.run(Class::Removal, move || erase(&shared, &record.pod, &record.id)).await;
            match undone {
                Ok(()) => rt.forget_container(&container.id),
                Err(undo) => {
                    tracing::warn!(container = container.id, "a container that failed is not gone yet: {undo}")
                }
            }
            Err(e)
        }
    }
}

fn record(sandbox: &SandboxRecord, config: v1::ContainerConfig, image: &ImageView) -> ContainerRecord {
    let by_config = status::signal_number(config.stop_signal());
    let by_image = status::signal_by_name(&image.stop_signal);
    let log_path = match (sandbox.config.log_directory.as_str(), config.log_path.as_str()) {
        ("", _) | (_, "") => String::new(),
        (folder, file) => Path::new(folder).join(file).to_string_lossy().into_owned(),
    };
    ContainerRecord {
        id: new_id(),
        pod: sandbox.id.clone(),
        created_at: pod_supervisor::now(),
        started_at: 0,
        pid: 0,
        exit: None,
        reason: String::new(),
        message: String::new(),
        image_id: image.id.clone(),
        image_ref: image.repo_digests.first().unwrap_or(&image.id).clone(),
        stop_signal: by_config.or(by_image).unwrap_or(15),
        user: User::default(),
        log_path,
        config,
    }
}

/// The process whose PID namespace is joined, where that is asked for.
fn target_pid(rt: &Runtime, record: &ContainerRecord) -> Done<Option<u32>> {
    let context = record.config.linux.as_ref().and_then(|l| l.security_context.as_ref());
    let Some(options) = context.and_then(|c| c.namespace_options.as_ref()) else { return Ok(None) };
    if options.pid() != v1::NamespaceMode::Target {
        return Ok(None);
    }
    let target = rt.container(&options.target_id)?;
    if target.pod != record.pod {
        return Err(RuntimeError::Refused(format!("container {:?} is not in this pod", target.id)));
    }
    let target = target.record();
    let running = target.state() == v1::ContainerState::ContainerRunning;
    Ok(u32::try_from(target.pid).ok().filter(|pid| *pid > 0 && running))
}

/// Record, root file system, spec.
fn make(
    rt: &Runtime,
    sandbox: &SandboxRecord,
    mut record: ContainerRecord,
    image: &ImageView,
    volumes: &Volumes,
    target_pid: Option<u32>,
) -> Done<ContainerRecord> {
    let options = &rt.options;
    let folder = options.containers_root(&record.pod).join(&record.id);
    crate::options::private_dir(&folder)?;
    record.write(options)?;
    rt.images.hold(image, &volumes.images(), &record.id)?;
    let bundle = options.bundle(&record.pod, &record.id);
    let users = users::range(&sandbox.config)?;
    rootfs::mount(options.snapshotter, &rt.images.lowers(image)?, users, &folder, &bundle)?;
    users::let_in(sandbox, &[&bundle])?;
    let places = volumes.mount(rt, &record.config.mounts, &folder, &bundle)?;
    let spec = spec(rt, sandbox, &record, image, &places, target_pid)?;
    if let Some(folder) = Path::new(&record.log_path).parent().filter(|_| !record.log_path.is_empty()) {
        std::fs::create_dir_all(folder).at("mkdir", folder)?;
    }
    if let Some(user) = spec.process().as_ref().map(|p| p.user()) {
        let groups = user.additional_gids().clone().unwrap_or_default();
        record.user = User { uid: user.uid(), gid: user.gid(), groups };
    }
    // Who it is takes the image's own files to know, which are there since the record is.
    if record.user != User::default() {
        record.write(options)?;
    }
    // Last, and whole: by it a container that is made is told from one over whose making this process died. Not flushed, as records
    // are: no bundle outlives a boot.
    let (path, half) = (bundle.join(CONFIG), bundle.join("config.json.tmp"));
    let text = serde_json::to_vec(&spec).map_err(std::io::Error::from).at("write", &path)?;
    crate::options::private_file(&half, &text)?;
    std::fs::rename(&half, &path).at("write", &path)?;
    Ok(record)
}

fn spec(
    rt: &Runtime,
    sandbox: &SandboxRecord,
    record: &ContainerRecord,
    image: &ImageView,
    volumes: &BTreeMap<usize, PathBuf>,
    target_pid: Option<u32>,
) -> Done<Spec> {
    let options = &rt.options;
    let config = &record.config;
    let context = config.linux.as_ref().and_then(|l| l.security_context.as_ref());
    let rootfs = options.bundle(&record.pod, &record.id).join(rootfs::NAME);
    let passwd = process::user_files(&rootfs)?;
    let seccomp_file = match seccomp_choice(context)? {
        SeccompChoice::File(path) => Some(process::seccomp_file(&path)?),
        _ => None,
    };
    let privileged = context.is_some_and(|c| c.privileged);
    let host_devices = if privileged { process::host_devices()? } else { Vec::new() };
    let node = NodeFacts { host_devices, ..rt.handlers.find(&sandbox.runtime_handler)?.node.clone() };
    let spec = container_spec(&SpecRequest {
        container_id: &record.id,
        sandbox_id: &record.pod,
        config,
        sandbox: &sandbox.config,
        image: &image.process,
        users: &passwd,
        namespaces: &namespaces(options, sandbox),
        target_pid,
        files: &pod_files::pod_files(options, sandbox),
        sources: &process::mount_sources(&config.mounts, volumes)?,
        devices: &process::devices(&config.devices)?,
        cdi: &cdi::brought(&options.cdi_spec_dirs, config)?,
        seccomp_file: seccomp_file.as_deref(),
        node: &node,
    })?;
    Ok(spec)
}

fn namespaces(options: &crate::Options, sandbox: &SandboxRecord) -> PodNamespaces {
    let modes = sandbox.namespaces();
    let folder = options.pod_run(&sandbox.id).join(NAMESPACES);
    let has = |mode: v1::NamespaceMode, name: &str| (mode == v1::NamespaceMode::Pod).then(|| folder.join(name));
    PodNamespaces {
        network: has(modes.network(), "net"),
        uts: has(modes.network(), "uts"),
        ipc: has(modes.ipc(), "ipc"),
        pid: has(modes.pid(), "pid"),
        user: modes.userns_options.filter(|u| u.mode() == v1::NamespaceMode::Pod).map(|_| folder.join("user")),
    }
}

/// Stops a container: its signal, and after `grace` SIGKILL. One that is not there or has ended is fine.
pub(crate) async fn stop(rt: &Arc<Runtime>, id: &str, grace: Duration) -> Done<()> {
    let Some(container) = rt.find_container(id) else { return Ok(()) };
    let record = container.record();
    if record.state() == v1::ContainerState::ContainerRunning && !grace.is_zero() {
        match signal(rt, &record, record.stop_signal).await {
            Ok(_) if wait(&container, grace).await => return Ok(()),
            Ok(_) | Err(SupervisorError::Gone | SupervisorError::Unknown(_)) => {}
            Err(SupervisorError::Late) => {
                tracing::warn!(container = id, "its supervisor does not answer: it is killed")
            }
            Err(e) => return Err(e.into()),
        }
    }
    kill(rt, &container).await
}

/// Kills a container and waits for its end. One that is not known to have been started may have been: the supervisor is asked.
pub(crate) async fn kill(rt: &Arc<Runtime>, container: &Arc<Container>) -> Done<()> {
    let record = container.record();
    if record.state() == v1::ContainerState::ContainerExited {
        return Ok(());
    }
    match signal(rt, &record, 9).await {
        Ok(_) => {}
        // Nobody else will: whoever watches a pod does not act on one that is being stopped.
        Err(e @ (SupervisorError::Gone | SupervisorError::Unknown(_))) => {
            if matches!(e, SupervisorError::Gone) {
                ends::left_by_supervisor(rt, &container.pod).await;
            }
            if !ends::may_run(rt, container) {
                return Ok(());
            }
            ends::make(rt, container, ends::LOST).await;
        }
        Err(e @ SupervisorError::Late) => {
            tracing::warn!(container = container.id, "it is killed by its cgroup: {e}");
            ends::make(rt, container, ends::MUTE).await;
        }
        Err(e) => return Err(e.into()),
    }
    if wait(container, KILL_TIME).await {
        return Ok(());
    }
    // Nobody follows a supervisor whose line broke while its pod is being stopped.
    match ends::on_disk(rt, container).await {
        Some(exit) => {
            ends::take_in(rt, container, exit, "", "").await;
            Ok(())
        }
        None => Err(RuntimeError::Late(format!("container {:?} has been killed and does not end", container.id))),
    }
}

async fn signal(rt: &Arc<Runtime>, record: &ContainerRecord, signal: i32) -> Result<Answer, SupervisorError> {
    let request = Request::Signal { id: record.id.clone(), signal };
    supervisor::ask_soon(&rt.socket(&record.pod), &record.id, &request).await
}

async fn wait(container: &Container, time: Duration) -> bool {
    let mut ended = container.ended.subscribe();
    tokio::time::timeout(time, ended.wait_for(|ended| *ended)).await.is_ok_and(|r| r.is_ok())
}

/// Removes a container, killing it if it runs. One that is not there is fine.
pub(crate) async fn remove(rt: &Arc<Runtime>, id: &str) -> Done<()> {
    let Some(container) = rt.find_container(id) else { return Ok(()) };
    let _work = container.work.lock().await;
    kill(rt, &container).await?;
    let forget = Request::Forget { id: id.to_owned() };
    match supervisor::ask_soon(&rt.socket(&container.pod), id, &forget).await {
        Ok(_) => {}
        // An OCI runtime that was killed in the midst of a start may have left what it knows, and no supervisor looks after it.
        Err(SupervisorError::Gone | SupervisorError::Unknown(_)) => ends::delete(rt, &container.pod, id).await,
        Err(e) => return Err(e.into()),
    }
    container.write_no_more().await;
    let (shared, record) = (Arc::clone(rt), container.record());
    rt.blocking.run(Class::Removal, move || erase(&shared, &record.pod, &record.id)).await?;
    rt.forget_container(id);
    rt.happened(id, &container.pod, v1::ContainerEventType::ContainerDeletedEvent);
    Ok(())
}

/// Undoes [`make`]; the folder with the record goes last.
pub(crate) fn erase(rt: &Runtime, pod: &str, id: &str) -> Done<()> {
    if let Some(sandbox) = rt.find_pod(pod)
        && let Some(cgroup) = cgroups::of_container(rt, &sandbox.record(), id)
    {
        // The OCI runtime does this; it may have been killed.
        rt.cgroups.remove(&cgroup)?;
    }
    let bundle = rt.options.bundle(pod, id);
    volumes::unmount(&bundle)?;
    rootfs::unmount(&bundle)?;
    LinuxFs.remove_tree(&bundle)?;
    rt.images.release(id)?;
    LinuxFs.remove_tree(&rt.options.containers_root(pod).join(id))?;
    Ok(())
}
