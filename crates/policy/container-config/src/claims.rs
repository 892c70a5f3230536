//! Which claims of dynamic resources (`resourceClaims`) must be prepared before a pod's sandbox, or a container, is made.

use model::core::{Container, Pod};

/// What the claims of a pod are called in the API, in the order of the specification; the scheduler's own claim for extended
/// resources comes last. A claim that its controller found needless (a status without a name) is left out. One that does not
/// exist yet goes by its name in the pod: it has to be waited for as well.
#[must_use]
pub fn pod_claims(pod: &Pod) -> Vec<&str> {
    let listed = pod.spec.iter().flat_map(|s| s.resource_claims.iter().flatten());
    let own = listed.filter_map(|c| claim_name(pod, &c.name, c.resource_claim_name.as_deref()));
    own.chain(extended(pod).map(|e| e.resource_claim_name.as_str())).collect()
}

/// Those of them whose devices this container is given.
#[must_use]
pub fn container_claims<'a>(pod: &'a Pod, container: &Container) -> Vec<&'a str> {
    let used = container.resources.iter().flat_map(|r| r.claims.iter().flatten());
    let used: Vec<&str> = used.map(|c| c.name.as_str()).collect();
    let listed = pod.spec.iter().flat_map(|s| s.resource_claims.iter().flatten());
    let own = listed.filter(|c| used.contains(&c.name.as_str()));
    let own = own.filter_map(|c| claim_name(pod, &c.name, c.resource_claim_name.as_deref()));
    let mapped = extended(pod).filter(|e| e.request_mappings.iter().any(|m| m.container_name == container.name));
    own.chain(mapped.map(|e| e.resource_claim_name.as_str())).collect()
}

fn claim_name<'a>(pod: &'a Pod, name: &'a str, direct: Option<&'a str>) -> Option<&'a str> {
    if direct.is_some() {
        return direct;
    }
    let made = pod.status.iter().flat_map(|s| s.resource_claim_statuses.iter().flatten()).find(|s| s.name == name);
    made.map_or(Some(name), |made| made.resource_claim_name.as_deref())
}

fn extended(pod: &Pod) -> impl Iterator<Item = &model::core::PodExtendedResourceClaimStatus> {
    pod.status.iter().filter_map(|s| s.extended_resource_claim_status.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_that_need_a_driver_are_named() {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {
                "resourceClaims": [
                    { "name": "direct", "resourceClaimName": "shared-gpu" },
                    { "name": "made", "resourceClaimTemplateName": "t" },
                    { "name": "needless", "resourceClaimTemplateName": "t" },
                    { "name": "to-come", "resourceClaimTemplateName": "t" },
                ],
                "containers": [
                    { "name": "all", "resources": { "claims": [{ "name": "made" }, { "name": "needless" }] } },
                    { "name": "none" },
                    { "name": "mapped" },
                ],
            },
            "status": {
                "resourceClaimStatuses": [{ "name": "made", "resourceClaimName": "web-made-x1" }, { "name": "needless" }],
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "web-extended-x2",
                    "requestMappings": [{ "containerName": "mapped", "resourceName": "acme.com/gpu", "requestName": "r" }],
                },
            },
        }))
        .unwrap();
        assert_eq!(pod_claims(&pod), ["shared-gpu", "web-made-x1", "to-come", "web-extended-x2"]);
        let of = |i: usize| container_claims(&pod, &model::pod::regular_containers(&pod)[i]);
        assert_eq!((of(0), of(1), of(2)), (vec!["web-made-x1"], vec![], vec!["web-extended-x2"]));
        assert!(pod_claims(&Pod::default()).is_empty());
    }
}
