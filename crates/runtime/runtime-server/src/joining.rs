//! Moves supervisors into their cgroups, where they cannot enter them by themselves: systemd makes a scope with whom it has; one of a version before this
//! does not know how.

use std::path::PathBuf;
use std::sync::Arc;

use cri_api::v1;
use tracing::warn;

use crate::blocking::Class;
use crate::cgroups;
use crate::error::{Done, RuntimeError};
use crate::runtime::{Pod, Runtime};

/// Does it apart from what others wait for. systemd takes as long as it takes.
pub(crate) async fn run(rt: Arc<Runtime>, join: impl FnOnce(&Runtime) -> Done<()> + Send + 'static) -> Done<()> {
    let class = if rt.options.systemd_cgroup { Class::Making } else { Class::State };
    let shared = Arc::clone(&rt);
    rt.blocking.run(class, move || join(&shared)).await
}

/// Looks whether a supervisor that was just started has entered its cgroup. One of a version before this one has not.
pub(crate) async fn check(rt: &Arc<Runtime>, pod: &Pod, supervisor: Option<u32>, procs: Vec<PathBuf>) -> Done<()> {
    let has_process_1 = pod.record().namespaces().pid() == v1::NamespaceMode::Pod;
    let join = move |rt: &Runtime| {
        if cgroups::are_entered(&procs)? {
            return Ok(());
        }
        if has_process_1 {
            let program = rt.options.supervisor.display();
            let why = format!(
                "{program} is of a version before this one, and knows no pods that share processes: install both"
            );
            return Err(RuntimeError::Refused(why));
        }
        cgroups::join(rt, supervisor, &procs)
    };
    run(Arc::clone(rt), join).await
}

/// Moves a supervisor into its cgroup, if it is outside.
pub(crate) async fn again(rt: &Arc<Runtime>, pod: &Pod, supervisor: Option<u32>) {
    let Some(cgroup) = cgroups::of_sandbox(rt, &pod.record()) else { return };
    let id = pod.id.clone();
    let join =
        run(Arc::clone(rt), move |rt| cgroups::join_if_outside(rt, supervisor, &cgroups::procs_files(rt, &cgroup)));
    pod.joins(async move {
        if let Err(e) = join.await {
            warn!(pod = id, "its supervisor is not in its cgroup: {e}");
        }
    })
    .await;
    // systemd may not answer for long, and others are to be served meanwhile; who starts a container waits.
    if !rt.options.systemd_cgroup {
        pod.joined().await;
    }
}
