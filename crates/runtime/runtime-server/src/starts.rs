//! How containers are found to have been started: by who asked for it, or by who watches their supervisor.

use std::sync::Arc;

use cri_api::v1;
use tracing::{info, warn};

use crate::runtime::{Container, Runtime};

/// Takes in that a container was started. Told twice is told once; an end that was told before is not undone.
pub(crate) fn take_in(rt: &Arc<Runtime>, container: &Arc<Container>, pid: i32, started_at: i64) {
    let mut first = false;
    container.change(|r| {
        first = r.started_at == 0 && r.exit.is_none();
        (r.pid, r.started_at) = (pid, started_at);
    });
    if !first {
        return;
    }
    // The supervisor knows of it, and so does its record of the end: nobody has to wait for the disk.
    let (shared, written) = (Arc::clone(rt), Arc::clone(container));
    tokio::spawn(async move {
        if let Err(e) = shared.write_container(&written).await {
            warn!(container = written.id, "that it was started is not in its record yet: {e}");
        }
    });
    rt.happened(&container.id, &container.pod, v1::ContainerEventType::ContainerStartedEvent);
    info!(container = container.id, "started");
}
