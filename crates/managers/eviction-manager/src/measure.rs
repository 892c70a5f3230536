//! What pods use, asked for only when it decides something.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::Clock;
use contract::stats::{StatsError, Summarise};
use contract::{Crew, EvictionManager as Role};
use eviction::Resource;
use model::PodUid;
use model::stats::Summary;

use crate::evict;

/// How long a pass waits for volumes that were never measured.
const LIMIT: Duration = Duration::from_secs(20);
/// How often it looks whether they are.
const PERIOD: Duration = Duration::from_secs(1);

/// What pods use.
pub(crate) struct Measured {
    pub(crate) summary: Arc<Summary>,
    /// Pods with volumes that were never measured, where that was looked at.
    pub(crate) unmeasured: Option<BTreeSet<PodUid>>,
}

/// Processor and memory, which takes the kernel's files alone: a runtime that is short of memory itself may not answer.
pub(crate) async fn memory(crew: &Crew<Role>) -> Result<Arc<Summary>, StatsError> {
    crew.call(Summarise { only_cpu_and_memory: true }).await
}

/// All of it. When a disk is short it waits for pods whose volumes were never measured: they would count as empty. Not again for
/// those that are `known` as such; where that is `None` for nobody.
pub(crate) async fn all(
    crew: &Crew<Role>,
    clock: &Clock,
    due: Option<Resource>,
    known: Option<BTreeSet<PodUid>>,
) -> Result<Measured, StatsError> {
    let of_disk = matches!(due, Some(Resource::EphemeralStorage | Resource::Inodes));
    let known = known.filter(|_| of_disk);
    let is_awaited = |measured: &Measured| match (&measured.unmeasured, &known) {
        (Some(unmeasured), Some(known)) => !unmeasured.is_subset(known),
        _ => false,
    };
    let until = clock.now() + LIMIT;
    loop {
        let summary = crew.call(Summarise { only_cpu_and_memory: false }).await?;
        let unmeasured = known.is_some().then(|| evict::unmeasured(crew, &summary));
        let measured = Measured { summary, unmeasured };
        if !is_awaited(&measured) || clock.now() >= until {
            return Ok(measured);
        }
        clock.sleep(PERIOD).await;
    }
}
