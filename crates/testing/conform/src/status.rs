//! The contract of StatusManager: `contract::status`, and 9.6 and 9.9 of pod-lifecycle.

mod bed;
mod ends;
mod faults;
mod versions;

use contract::StatusManager;

use crate::case::{Case, Outcome};
use bed::Bed;

/// All cases of the role.
#[must_use]
pub fn cases() -> Vec<Case<StatusManager>> {
    [versions::cases(), ends::cases(), faults::cases()].into_iter().flatten().collect()
}

/// A case that begins with a manager that knows nothing.
fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<StatusManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::new(name, source, rule, move |stage| {
        let play = play.clone();
        async move {
            let bed = Bed { stage };
            bed.stage.begin().await?;
            play(bed).await
        }
    })
}
