//! What the CSIDriver objects say: how often drivers want to be asked again, and what else their users read.

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
    /// By name of the driver.
    pub(crate) objects: BTreeMap<String, Arc<CSIDriver>>,
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
                self.objects = objects.into_iter().filter_map(driver).map(|d| (name(&d), d)).collect();
            }
            Followed::Applied(object) => self.objects.extend(driver(object).map(|d| (name(&d), d))),
            Followed::Deleted(object) => {
                if let Some(gone) = driver(object) {
                    self.objects.remove(&name(&gone));
                }
            }
            Followed::Failed(error) => tracing::debug!(%error, "the CSIDriver objects cannot be followed"),
        }
    }

    /// How often each driver wants to be asked again.
    pub(crate) fn periods(&self) -> BTreeMap<String, Duration> {
        self.objects.iter().filter_map(|(name, of)| Some((name.clone(), update_period(of)?))).collect()
    }
}

fn name(of: &CSIDriver) -> String {
    of.metadata.name.clone().unwrap_or_default()
}

fn driver(object: Object) -> Option<Arc<CSIDriver>> {
    if let Object::CsiDriver(found) = object { Some(found) } else { None }
}
