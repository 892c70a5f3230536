//! Places: who serves the roles that another process may serve, as the configuration says and as commands change it.
//!
//! Each of these roles has a task ([`keep`]) that owns its place: it gives the place to whom was chosen, watches him through his
//! probation ([`trial`]), and gives it back. What was chosen is kept in [`standing`], outside of every actor: an actor that dies is built
//! anew as what it was. The daemon's end ends it; then the configuration says who serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use actor::Clock;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use node_config::{RemoteManagers, WhenAway};
use remote_manager::Counted;
use server::local::{Done, ManagerLine, Managers, NotDone, SwapOrder};
use tokio::sync::{mpsc, oneshot};

use super::Builder;
use keep::Place;
use stand_in::stand_in;
use standing::{Order, Shared, Want, locked, standing};

mod keep;
mod orders;
mod shadow;
mod stand_in;
mod standing;
mod trial;

/// Orders that may wait for one place.
const ORDERS: usize = 4;

/// All places, for whoever shows and changes them from other threads. Clones are the same.
#[derive(Clone, Default)]
pub struct Places(BTreeMap<&'static str, (Shared, mpsc::Sender<Order>)>);

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Places {
    /// Asks the processes that serve what they have counted, and has it told with the node's metrics.
    pub(crate) fn counted(&self) -> metrics_endpoint::Elsewhere {
        let places: Vec<Shared> = self.0.values().map(|(standing, _)| standing.clone()).collect();
        Arc::new(move || {
            let asked = places.clone().into_iter().map(|place| async move {
                let (role, link) = {
                    let standing = locked(&place);
                    (standing.role, standing.link.clone())
                };
                let counted = match &link {
                    Some(link) => link.counted().await,
                    None => Counted::Away,
                };
                match counted {
                    Counted::Away => metrics::elsewhere::is_away(role),
                    // What it said last stands.
                    Counted::Silent => {
                        tracing::warn!(role, "a manager in another process does not say what it has counted")
                    }
                    Counted::So(life, families) => {
                        let refused = metrics::elsewhere::take(role, life, families);
                        if refused > 0 {
                            tracing::debug!(role, refused, "families of a manager in another process are not told");
                        }
                    }
                }
            });
            join_all(asked).map(drop).boxed()
        })
    }

    fn order(&self, name: &str, want: Want) -> BoxFuture<'static, Result<Done, NotDone>> {
        let orders = self.0.get(name).map(|(_, orders)| orders.clone());
        async move {
            let refused = |why: &str| Err(NotDone::Refused(why.to_owned()));
            let Some(orders) = orders else { return refused("there is no such manager") };
            let (done, answer) = oneshot::channel();
            match orders.try_send(Order { want, done }) {
                Ok(()) => answer.await.unwrap_or_else(|_| Err(NotDone::Failed("the node stops".to_owned()))),
                Err(mpsc::error::TrySendError::Full(_)) => refused("it is busy with other orders; try again"),
                Err(mpsc::error::TrySendError::Closed(_)) => refused("the node stops"),
            }
        }
        .boxed()
    }
}

impl Managers for Places {
    fn lines(&self) -> Vec<ManagerLine> {
        self.0.iter().map(|(name, (standing, _))| locked(standing).line(name)).collect()
    }

    fn swap(&self, name: &str, order: SwapOrder) -> BoxFuture<'static, Result<Done, NotDone>> {
        self.order(name, Want::Swap(order))
    }

    fn roll_back(&self, name: &str) -> BoxFuture<'static, Result<Done, NotDone>> {
        self.order(name, Want::RollBack)
    }
}

macro_rules! places {
    ($($name:literal: $field:ident, $role:ident;)*) => {
        /// Names of the roles with a place.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];

        impl Builder {
            /// Has these managers served by other processes, and lets commands change who serves: through what is answered.
            #[must_use]
            pub fn places(mut self, managers: &RemoteManagers, clock: &Clock) -> (Self, Places) {
                let mut places = Places::default();
                $(
                    let configured = managers.get($name).cloned();
                    let shared = standing::<contract::$role>(&self.wiring, configured.clone(), clock.clone());
                    let (orders, waiting) = mpsc::channel(ORDERS);
                    places.0.insert($name, (shared.clone(), orders));
                    let mut place = Place::new(shared, self.$field.clone(), waiting);
                    if let Some(remote) = configured.filter(|remote| remote.when_away != WhenAway::Builtin) {
                        let link = place.holds(&remote);
                        self = self.$field(move |setup| stand_in(setup, &remote, link.clone()));
                    }
                    self = self.when_up(move |node| {
                        let node = node.clone();
                        drop(tokio::task::spawn_local(async move { place.keep(&node).await }));
                    });
                )*
                (self, places)
            }
        }
    };
}
places! {
    "images": image_manager, ImageManager;
    "probes": probe_manager, ProbeManager;
    "status": status_manager, StatusManager;
    "volumes": volume_manager, VolumeManager;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_knows_the_same_names() {
        assert_eq!(NAMES, node_config::REMOTE_MANAGERS);
    }
}
