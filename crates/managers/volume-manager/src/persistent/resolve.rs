//! Which volume a pod's volume stands for, asked for anew each time.

use std::sync::Arc;

use model::core::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use model::pod;
use ports::api::{ApiExt, ApiServer};
use volume_plan::claim::{ClaimName, check_affinity, check_bound, check_use, claim_name, not_processed, volume_name};
use volume_plan::growth;
use volume_plan::migration;
use volume_plan::source::{Claim, Resolved, of_inline, of_persistent_volume};

use crate::deps::Tools;

/// A volume that a pod may have, as far as objects say.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub volume: Resolved,
    /// Why this node cannot have it.
    pub elsewhere: Option<String>,
}

pub(crate) fn api(tools: &Tools) -> Result<&Arc<dyn ApiServer>, String> {
    tools.deps.api.as_ref().ok_or_else(|| "this node has no API server".to_owned())
}

pub(crate) async fn resolve(tools: &Tools, pod: &Arc<Pod>, volume: &Volume) -> Result<Wanted, String> {
    let namespace = pod::namespace(pod);
    if let Some(found) = of_inline(&pod::uid(pod), namespace, volume) {
        return Ok(Wanted { volume: found?, elsewhere: None });
    }
    if let Some(migrated) = migration::of_volume(namespace, volume) {
        let volume = migrated.map_err(|e| format!("failed to translate in-tree pv to CSI: {e}"))?;
        return Ok(Wanted { volume, elsewhere: None });
    }
    let Some(claim) = claim_name(pod, volume) else {
        return Err(format!("volume {:?} has no claim", volume.name));
    };
    let (resolved, found) = bound(tools, pod, namespace, &claim).await?;
    check_use(pod, &volume.name, resolved.mode)?;
    let node = tools.node.get();
    let labels = node.node.as_ref().and_then(|n| n.metadata.labels.clone()).unwrap_or_default();
    let elsewhere = check_affinity(&found, &tools.config.node_name, &labels).err();
    Ok(Wanted { volume: resolved, elsewhere })
}

async fn bound(
    tools: &Tools,
    pod: &Pod,
    namespace: &str,
    claim: &ClaimName,
) -> Result<(Resolved, PersistentVolume), String> {
    let failed = |why: &str| not_processed(pod, claim, why);
    let api = api(tools).map_err(|e| failed(&e))?;
    let found: PersistentVolumeClaim = api
        .get(Some(namespace), &claim.name)
        .await
        .map_err(|e| failed(&format!("failed to fetch PVC from API server: {e}")))?;
    let name = volume_name(pod, claim, &found)?;
    let volume: PersistentVolume =
        api.get(None, &name).await.map_err(|e| failed(&format!("failed to fetch PV {name} from API server: {e}")))?;
    check_bound(&found, &volume).map_err(|e| failed(&e))?;
    let mut resolved = of_persistent_volume(&volume, claim.read_only).map_err(|e| failed(&e))?;
    let (namespace, name) = (namespace.to_owned(), claim.name.clone());
    resolved.claim = Some(Claim { namespace, name, size: growth::size(&found) });
    Ok((resolved, volume))
}
