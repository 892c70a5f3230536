//! How often drivers want to be asked again, as their CSIDriver objects say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actor::SpawnHandle;
use model::k8s_openapi::api::storage::v1::CSIDriver;
use ports::api::{Followed, Object};
use volume_plan::csi::update_period;

/// When drivers are asked again. By name.
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    /// The CSIDriver objects are followed: from the first driver on.
    pub(crate) following: bool,
    /// What these say.
    pub(crate) periods: BTreeMap<String, Duration>,
    /// Of drivers that are registered, with the period that they were made for.
    pub(crate) timers: BTreeMap<String, (Duration, SpawnHandle)>,
    /// Those that are being asked because it was time.
    pub(crate) under_way: BTreeSet<String>,
}

impl Refreshes {
    /// What a step says of the objects.
    pub(crate) fn apply(&mut self, step: Followed) {
        match step {
            Followed::All(objects) => {
                self.periods.clear();
                objects.into_iter().filter_map(driver).for_each(|d| self.note(&d));
            }
            Followed::Applied(object) => driver(object).iter().for_each(|d| self.note(d)),
            Followed::Deleted(object) => {
                if let Some(name) = driver(object).and_then(|d| d.metadata.name.clone()) {
                    self.periods.remove(&name);
                }
            }
            Followed::Failed(error) => tracing::debug!(%error, "the CSIDriver objects cannot be followed"),
        }
    }

    fn note(&mut self, of: &CSIDriver) {
        let name = of.metadata.name.clone().unwrap_or_default();
        match update_period(of) {
            Some(period) => self.periods.insert(name, period),
            None => self.periods.remove(&name),
        };
    }
}

fn driver(object: Object) -> Option<Arc<CSIDriver>> {
    if let Object::CsiDriver(found) = object { Some(found) } else { None }
}
