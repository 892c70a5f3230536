//! What drivers can do. Each is asked once per registration, and again after it failed: it may have been started anew without a
//! word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::plugin::CsiDriver;
use model::Timestamp;

/// What a driver can do, as its codes.
pub(crate) type Abilities = Arc<BTreeSet<i32>>;

/// What drivers said, and the registration that they were asked in. By name.
#[derive(Debug, Default)]
pub(crate) struct Said(BTreeMap<String, ((u64, Timestamp), Abilities)>);

fn registration(of: &CsiDriver) -> (u64, Timestamp) {
    (of.generation, of.registered_at)
}

impl Said {
    /// What the driver said since it was registered.
    pub(crate) fn since(&self, driver: &str, of: &CsiDriver) -> Option<Abilities> {
        self.0.get(driver).filter(|(asked_in, _)| *asked_in == registration(of)).map(|(_, can)| can.clone())
    }

    pub(crate) fn note(&mut self, driver: &str, of: &CsiDriver, can: &Abilities) {
        self.0.insert(driver.to_owned(), (registration(of), can.clone()));
    }

    pub(crate) fn forget(&mut self, driver: &str) {
        self.0.remove(driver);
    }
}
