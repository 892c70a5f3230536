//! What drivers can do. Each is asked once per registration, and again after it failed: it may have been started anew without a
//! word.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::plugin::CsiDriver;
use model::Timestamp;

use super::Volumes;

/// What a driver can do, as its codes.
pub(crate) type Abilities = Arc<BTreeSet<i32>>;

/// What a driver said, and the registration that it was asked in.
#[derive(Debug)]
pub(super) struct Said {
    registration: (u64, Timestamp),
    can: Abilities,
}

fn registration(of: &CsiDriver) -> (u64, Timestamp) {
    (of.generation, of.registered_at)
}

impl Volumes {
    /// What the driver said since it was registered.
    pub(crate) fn abilities(&self, driver: &str, of: &CsiDriver) -> Option<Abilities> {
        let state = self.state();
        state.abilities.get(driver).filter(|said| said.registration == registration(of)).map(|said| said.can.clone())
    }

    pub(crate) fn note_abilities(&self, driver: &str, of: &CsiDriver, can: &Abilities) {
        let said = Said { registration: registration(of), can: can.clone() };
        self.state().abilities.insert(driver.to_owned(), said);
    }

    pub(crate) fn forget_abilities(&self, driver: &str) {
        self.state().abilities.remove(driver);
    }
}
