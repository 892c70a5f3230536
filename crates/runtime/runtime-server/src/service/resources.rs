//! New limits for a container, by who started it.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use container_spec::linux_resources;
use cri_api::v1;
use oci_spec::runtime::LinuxResources;
use pod_supervisor::cgroups::Groups;

use crate::blocking::Class;
use crate::cgroups;
use crate::error::{At, Done, RuntimeError};
use crate::handlers::Handler;
use crate::records::ContainerRecord;
use crate::runtime::{Runtime, new_id};

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// What is asked for replaces what was there; zero and empty leave it.
fn merged(old: Option<v1::LinuxContainerResources>, new: v1::LinuxContainerResources) -> v1::LinuxContainerResources {
    let Some(mut now) = old else { return new };
    for (to, from) in [
        (&mut now.cpu_period, new.cpu_period),
        (&mut now.cpu_quota, new.cpu_quota),
        (&mut now.cpu_shares, new.cpu_shares),
        (&mut now.memory_limit_in_bytes, new.memory_limit_in_bytes),
        (&mut now.memory_swap_limit_in_bytes, new.memory_swap_limit_in_bytes),
        (&mut now.oom_score_adj, new.oom_score_adj),
    ] {
        if from != 0 {
            *to = from;
        }
    }
    for (to, from) in [(&mut now.cpuset_cpus, new.cpuset_cpus), (&mut now.cpuset_mems, new.cpuset_mems)] {
        if !from.is_empty() {
            *to = from;
        }
    }
    if !new.hugepage_limits.is_empty() {
        now.hugepage_limits = new.hugepage_limits;
    }
    now.unified.extend(new.unified);
    now
}

/// Changes the limits of a container: of a running one now, of one that was not started in what it will be started with.
pub(super) async fn update(rt: &Arc<Runtime>, request: v1::UpdateContainerResourcesRequest) -> Done<()> {
    let container = rt.container(&request.container_id)?;
    let _work = container.work.lock().await;
    let record = container.record();
    let new = request.linux.ok_or_else(|| RuntimeError::Refused("no resources are given".into()))?;
    let old = record.config.linux.as_ref().and_then(|l| l.resources.clone());
    let all = merged(old, new);
    let handler = rt.handlers.find(&rt.pod(&record.pod)?.record().runtime_handler)?;
    let resources = linux_resources(&all, &handler.node);
    let bundle = rt.options.bundle(&record.pod, &record.id);
    match record.state() {
        v1::ContainerState::ContainerExited => {
            return Err(RuntimeError::Refused(format!("container {:?} has ended", record.id)));
        }
        v1::ContainerState::ContainerCreated => {
            let write = move || {
                let path = bundle.join("config.json");
                let mut spec = oci_spec::runtime::Spec::load(&path).map_err(io::Error::other).at("read", &path)?;
                if let Some(linux) = spec.linux_mut() {
                    let mut resources = resources;
                    resources.set_devices(linux.resources().as_ref().and_then(|r| r.devices().clone()));
                    linux.set_resources(Some(resources));
                }
                spec.save(&path).map_err(io::Error::other).at("write", &path)
            };
            rt.blocking.run(Class::State, write).await?;
        }
        _ => running(rt, handler, &record, &bundle, &resources).await?,
    }
    container.change(|r| r.config.linux.get_or_insert_default().resources = Some(all));
    rt.write_container(&container).await
}

async fn running(
    rt: &Arc<Runtime>,
    handler: &Handler,
    record: &ContainerRecord,
    bundle: &Path,
    resources: &LinuxResources,
) -> Done<()> {
    let id = &record.id;
    if rt.options.is_own_start(&record.pod, id) {
        let cgroup = cgroups::of_container(rt, &rt.pod(&record.pod)?.record(), id).unwrap_or_default();
        let refused = |e: io::Error| RuntimeError::Refused(format!("limits of {id} are not changed: {e}"));
        let limits = cgroups::own_limits(resources).map_err(refused)?;
        let shared = Arc::clone(rt);
        let set = move || Ok(Groups::of(&cgroup, &shared.hierarchies).and_then(|groups| groups.limit(&limits)));
        return rt.blocking.run(Class::State, set).await?.map_err(refused);
    }
    let file = &bundle.join(format!("update-{}.json", &new_id()[..16]));
    let text = serde_json::to_vec(resources).map_err(io::Error::from).at("write", file)?;
    let path = file.to_owned();
    rt.blocking.run(Class::State, move || crate::options::private_file(&path, &text)).await?;
    let mut call = handler.call();
    call.arg("update").arg("--resources").arg(file).arg(id).stderr(Stdio::piped());
    let late = |_| RuntimeError::Late(format!("the OCI runtime did not change {id} in {TIME_LIMIT:?}"));
    let out = tokio::time::timeout(TIME_LIMIT, call.output()).await.map_err(late)?.at("run", &handler.program)?;
    // It lies in a folder that goes with the container.
    let _ = std::fs::remove_file(file);
    if out.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&out.stderr);
    Err(RuntimeError::Refused(format!("limits of {id} are not changed: {}", words.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_changes() {
        let old = v1::LinuxContainerResources {
            cpu_quota: 5,
            memory_limit_in_bytes: 7,
            cpuset_cpus: "0".into(),
            ..v1::LinuxContainerResources::default()
        };
        let new = v1::LinuxContainerResources {
            cpu_quota: 6,
            cpuset_mems: "1".into(),
            ..v1::LinuxContainerResources::default()
        };
        let both = merged(Some(old), new.clone());
        assert_eq!((both.cpu_quota, both.memory_limit_in_bytes), (6, 7));
        assert_eq!((both.cpuset_cpus.as_str(), both.cpuset_mems.as_str()), ("0", "1"));
        assert_eq!(merged(None, new.clone()), new);
    }
}
