//! Chores that ask other managers; they run beside the actor's turns.

use contract::Crew;
use contract::cgroup::{RemovePodCgroup, ThrottlePodCgroup};
use contract::runtime::{Observed, Relist};
use contract::volume::RemovePodDir;
use model::PodUid;

use super::chores::Chore;

/// What a chore found out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Nothing,
    /// The fresh look confirms that the pod runs and belongs to nobody.
    StartKillingOrphan(PodUid),
}

/// Runs one chore that asks others.
pub(crate) async fn run(crew: &Crew<contract::PodManager>, chore: &Chore) -> Result<Done, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    match chore.clone() {
        Chore::KillRuntimeOrphan(uid) | Chore::KillStray(uid) => {
            // The board may lag behind: only a fresh list may cost a pod its life.
            crew.call(Relist).await.map_err(|e| text(&e))?;
            let alive = crew.board::<Observed>().get(&uid).is_some_and(|row| row.pod.is_alive());
            return Ok(if alive { Done::StartKillingOrphan(uid) } else { Done::Nothing });
        }
        Chore::RemovePodDir(uid) => crew.call(RemovePodDir { uid }).await.map_err(|e| text(&e))?,
        Chore::RemoveCgroup(uid) => crew.call(RemovePodCgroup { uid }).await.map_err(|e| text(&e))?,
        Chore::ThrottleCgroup(uid) => crew.call(ThrottlePodCgroup { uid }).await.map_err(|e| text(&e))?,
        _ => {}
    }
    Ok(Done::Nothing)
}
