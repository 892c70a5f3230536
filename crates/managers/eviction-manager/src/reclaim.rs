//! Tidying up before a pod has to go.

use actor::Effects;
use contract::image::RemoveUnusedImages;
use contract::pod_manager::RemoveDeadContainers;
use contract::{Crew, EvictionManager as Role};
use eviction::Reclaim;

/// Does these, in order. A failure is no reason not to try the next: what it came to shows at the next look. Answers how many bytes of images
/// went, where that is known.
pub(crate) async fn run(crew: &Crew<Role>, steps: &[Reclaim], effects: &Effects) -> Option<u64> {
    let mut of_images = None;
    for step in steps {
        effects.hit("reclaim").await;
        match step {
            Reclaim::DeadContainers => {
                if let Err(e) = crew.ask(RemoveDeadContainers).await {
                    tracing::warn!(error = %e, "dead containers are not removed");
                }
            }
            Reclaim::UnusedImages => match crew.call(RemoveUnusedImages).await {
                Ok(freed) => {
                    tracing::info!(freed, "unused images are removed, as a disk runs short");
                    of_images = Some(freed);
                }
                Err(e) => tracing::warn!(error = %e, "unused images are not removed"),
            },
        }
    }
    of_images
}
