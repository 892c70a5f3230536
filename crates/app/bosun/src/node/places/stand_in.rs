//! What stands in for a manager elsewhere.

use std::sync::Arc;

use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::seam::StandIn;
use contract::{Answers, Role, Wiring};
use model::PodUid;
use node_config::{RemoteManager, WhenAway};
use remote_manager::{Link, Remote, To};

use crate::node::Setup;

/// Whether a pod is on the node.
pub(super) fn pods_of(wiring: &Wiring) -> Arc<dyn Fn(&PodUid) -> bool + Send + Sync> {
    let (desired, workers) = (wiring.board::<DesiredPod>(), wiring.board::<WorkerState>());
    Arc::new(move |uid: &PodUid| desired.get(uid).is_some() || workers.get(uid).is_some())
}

/// Spawns what stands in for a manager elsewhere.
pub(super) fn stand_in<R: Role>(setup: &Setup<'_, R>, remote: &RemoteManager, link: Link)
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    let to = To {
        address: remote.remote.clone(),
        when_away: match remote.when_away {
            // Until the one that is built in takes the place.
            WhenAway::Builtin | WhenAway::Hold => remote_manager::WhenAway::Hold,
            WhenAway::Fail => remote_manager::WhenAway::Fail,
        },
        link,
        is_here: pods_of(setup.wiring),
        journal: Some(setup.ports.journal.clone()),
    };
    setup.spawn_stand_in(move |crew| Remote::stand_in(crew, to.clone()));
}
