//! What a gathering of statistics reads from, and what it keeps for the next one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actor::{Effects, chain};
use contract::Crew;
use contract::stats::StatsError;
use model::reading::MachineReading;
use model::{PodUid, Timestamp};
use node_stats::{MeasuredVolume, Samples};
use ports::stats::StatsSource;

use crate::config::{Config, Deps};

/// What does not change is read again after this long all the same: memory and swap can be added.
const MACHINE_KEPT: i64 = 60_000_000_000;

/// Volumes as last measured.
pub(crate) type Volumes = Arc<BTreeMap<PodUid, Arc<[MeasuredVolume]>>>;

/// The machine, and when it was read.
type KnownMachine = Option<(Timestamp, Arc<MachineReading>)>;

/// What gatherings leave for the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    samples: Arc<Mutex<Samples>>,
    machine: Arc<Mutex<KnownMachine>>,
}

impl Cache {
    /// The machine as it was read last, or as it is now.
    pub(super) fn machine(&self, source: &dyn StatsSource, now: Timestamp) -> Result<Arc<MachineReading>, StatsError> {
        let mut known = locked(&self.machine);
        if let Some((at, machine)) = &*known
            && now.nanos_since(*at) < MACHINE_KEPT
        {
            return Ok(machine.clone());
        }
        let machine = Arc::new(source.machine().map_err(|e| failed("failed to get machine info", &e))?);
        *known = Some((now, machine.clone()));
        Ok(machine)
    }

    /// Earlier counters, which rates are made of.
    pub(super) fn samples(&self) -> MutexGuard<'_, Samples> {
        locked(&self.samples)
    }
}

fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left is a sample more or less.
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn failed(what: &str, e: &dyn std::error::Error) -> StatsError {
    StatsError { message: format!("{what}: {}", chain(e)) }
}

pub(super) fn missing(text: &str) -> StatsError {
    StatsError { message: text.to_owned() }
}

/// What a gathering works with.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) crew: Crew<contract::StatsManager>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) cache: Cache,
    pub(crate) volumes: Volumes,
    /// Volumes that outlive pods.
    pub(crate) told: Arc<BTreeMap<PodUid, Vec<MeasuredVolume>>>,
    pub(crate) effects: Effects,
}
