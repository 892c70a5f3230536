//! Claims of pods that start soon, looked up before somebody asks for their volumes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, Shared, join_all};
use model::core::Pod;
use volume_plan::claim::claim_name;

use super::resolve::{Wanted, resolve};
use crate::deps::Tools;

/// What the API server says of one volume, asked for once.
type Answer = Shared<LocalBoxFuture<'static, Option<Wanted>>>;

/// What was asked for one pod, by the names of its volumes. Good for one try: later ones ask anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected(Rc<BTreeMap<String, Answer>>);

impl Expected {
    /// Begins to ask, as soon as it is polled.
    pub(crate) fn of(tools: &Tools, pod: &Arc<Pod>) -> Self {
        let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
        let claimed = volumes.filter(|volume| claim_name(pod, volume).is_some());
        let ask = |volume: &model::core::Volume| {
            let (tools, pod, volume, name) = (tools.clone(), pod.clone(), volume.clone(), volume.name.clone());
            // Why there is none is told by the try, which asks again.
            (name, async move { resolve(&tools, &pod, &volume).await.ok() }.boxed_local().shared())
        };
        Self(Rc::new(claimed.map(ask).collect()))
    }

    /// Waits for all answers.
    pub(crate) async fn all(self) {
        join_all(self.0.values().cloned()).await;
    }

    /// What a volume stands for; `None`: nobody asked, or there was no good answer.
    pub(crate) async fn wanted(&self, volume: &str) -> Option<Wanted> {
        self.0.get(volume)?.clone().await
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}
