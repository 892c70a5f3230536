//! Does the container whose log is followed still run?

use std::sync::Arc;
use std::time::Duration;

use actor::watch;
use contract::runtime::Observed;
use cri_api::v1;
use model::ContainerId;
use model::runtime::ContainerState;
use ports::runtime::ContainerRuntime;
use tokio::time::Instant;

/// How long the runtime's own answer is good for.
const FRESH: Duration = Duration::from_secs(1);

/// Watches one container on the runtime board; asks the runtime only about what the board does not show.
pub(crate) struct Liveness {
    row: watch::Receiver<Option<Arc<Observed>>>,
    container: ContainerId,
    runtime: Arc<dyn ContainerRuntime>,
    running_at: Option<Instant>,
}

impl Liveness {
    pub(crate) fn new(
        row: watch::Receiver<Option<Arc<Observed>>>,
        container: ContainerId,
        runtime: Arc<dyn ContainerRuntime>,
    ) -> Self {
        Self { row, container, runtime, running_at: None }
    }

    /// Whether it runs. Changes after this are told by [`Liveness::changed`].
    ///
    /// # Errors
    /// The runtime says why it cannot tell, other than by being away: then the container is taken to run.
    pub(crate) async fn is_running(&mut self) -> Result<bool, String> {
        let row = self.row.borrow_and_update().clone();
        let seen = row.as_ref().and_then(|r| r.pod.containers.iter().find(|c| c.id == self.container));
        if let Some(seen) = seen {
            return Ok(seen.state == ContainerState::Running);
        }
        if self.running_at.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(true);
        }
        let running = match status(&*self.runtime, &self.container).await {
            Ok(status) => status.state() == v1::ContainerState::ContainerRunning,
            Err(e) if e.is_unavailable() => true,
            Err(e) => return Err(e.go_text()),
        };
        self.running_at = running.then(Instant::now);
        Ok(running)
    }

    /// Waits for news of the pod.
    pub(crate) async fn changed(&mut self) {
        if self.row.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The runtime's own word on a container.
///
/// # Errors
/// As the runtime answers; an answer without a status is `Unknown`.
pub(crate) async fn status(
    runtime: &dyn ContainerRuntime,
    container: &ContainerId,
) -> Result<v1::ContainerStatus, ports::runtime::RuntimeError> {
    let request = v1::ContainerStatusRequest { container_id: container.as_str().to_owned(), verbose: false };
    let answer = runtime.container_status(request).await?;
    let none = || ports::runtime::RuntimeError::new(ports::runtime::RuntimeCode::Unknown, "container status is nil");
    answer.status.ok_or_else(none)
}
