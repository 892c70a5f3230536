//! What the Node tells of the host, observed once.

use std::net::IpAddr;
use std::sync::Arc;

use actor::{Class, Effects};
use cri_api::v1;
use node_status::Image;
use node_status::address::{HostAddresses, choose};
use ports::host::{Identity, NodeHost};
use ports::runtime::ImageService;

use crate::config::{Config, Deps};

/// What changes slowly and costs calls: read now and then.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowFacts {
    /// Images, or `None` when they cannot be listed.
    pub images: Option<Vec<Image>>,
    /// Addresses, or why there are none.
    pub addresses: Option<Result<Vec<IpAddr>, String>>,
}

/// What was observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    pub identity: Identity,
    pub slow: SlowFacts,
}

/// Observes everything; the slow part only when `slow` is `None`.
pub(crate) async fn observe(
    deps: Arc<Deps>,
    config: Arc<Config>,
    slow: Option<SlowFacts>,
    effects: &Effects,
) -> Observation {
    let slow = match slow {
        Some(slow) => slow,
        None => {
            let (host, config) = (deps.host.clone(), config.clone());
            SlowFacts {
                images: images(&*deps.images).await,
                addresses: Some(effects.blocking(Class::NameLookups, move || addresses(&*host, &config)).await),
            }
        }
    };
    let host = deps.host.clone();
    let identity = effects.blocking(Class::HostFiles, move || host.identity()).await;
    Observation { identity, slow }
}

async fn images(service: &dyn ImageService) -> Option<Vec<Image>> {
    let of = |i: v1::Image| Image { digests: i.repo_digests, tags: i.repo_tags, size_bytes: i.size };
    match service.list_images(v1::ListImagesRequest::default()).await {
        Ok(list) => Some(list.images.into_iter().map(of).collect()),
        Err(e) => {
            tracing::debug!(error = %e, "images cannot be listed for the Node");
            None
        }
    }
}

fn addresses(host: &dyn NodeHost, config: &Config) -> Result<Vec<IpAddr>, String> {
    let plan = &config.plan;
    let given = plan.node_ips.iter().any(|ip| !ip.is_unspecified()) || plan.hostname.parse::<IpAddr>().is_ok();
    let found = host.addresses(if given { "" } else { &plan.hostname });
    let found =
        HostAddresses { interfaces: found.interfaces, resolved: found.resolved, default_route: found.default_route };
    choose(&plan.node_ips, &plan.hostname, &found)
}
