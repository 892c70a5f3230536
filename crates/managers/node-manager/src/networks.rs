//! Networks of pods, from the Node to the runtime.

use actor::Ctx;
use contract::runtime::SetPodNetworks;
use node_status::pod_networks;

use crate::actor::NodeManager;

impl NodeManager {
    /// Tells the runtime which networks the pods of this node have, where that changed; tried again with the next pass.
    pub(crate) fn tell_networks(&mut self, ctx: &mut Ctx<Self>) {
        let cidrs = pod_networks(self.node.api.as_deref(), &self.config.pod_cidr);
        if cidrs.is_empty() || cidrs == self.networks.told || std::mem::replace(&mut self.networks.telling, true) {
            return;
        }
        let (crew, ask) = (self.crew.clone(), SetPodNetworks { cidrs: cidrs.clone() });
        ctx.run(async move { crew.call(ask).await }, move |act: &mut Self, told, _| {
            act.networks.telling = false;
            match told {
                Ok(()) => act.networks.told = cidrs,
                Err(e) => tracing::warn!(cidrs, error = %e, "the runtime does not take the networks of pods"),
            }
        });
    }
}
