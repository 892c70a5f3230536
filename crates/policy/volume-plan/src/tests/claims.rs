use std::collections::BTreeMap;

use model::core::PersistentVolumeClaim;
use serde_json::{Value, json};

use super::{persistent, pod};
use crate::claim::{ClaimName, Mode, check_affinity, check_bound, check_use, claim_name, volume_name};

fn claim(meta: Value, phase: &str, volume: &str) -> PersistentVolumeClaim {
    let spec = json!({ "volumeName": volume });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec, "status": { "phase": phase } })).unwrap()
}

#[test]
fn a_claim_is_named_by_the_pod_or_made_for_it() {
    let volumes = json!([
        { "name": "a", "persistentVolumeClaim": { "claimName": "c", "readOnly": true } },
        { "name": "b", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
        { "name": "d", "emptyDir": {} },
    ]);
    let pod = pod(json!({ "containers": [], "volumes": volumes }));
    let names: Vec<_> = pod.spec.as_ref().unwrap().volumes.iter().flatten().map(|v| claim_name(&pod, v)).collect();
    let of = |name: &str, read_only, is_ephemeral| Some(ClaimName { name: name.into(), read_only, is_ephemeral });
    assert_eq!(names, [of("c", true, false), of("web-b", false, true), None]);
}

#[test]
fn a_claim_must_be_bound_and_not_going() {
    let pod = pod(json!({ "containers": [] }));
    let own = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1", "controller": true }]);
    let others = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u0", "controller": true }]);
    let loose = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1" }]);
    let gone = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let protected =
        json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"] });
    let not_owner = "PVC shop/c was not created for pod shop/web (pod is not owner)";
    for (found, is_ephemeral, want) in [
        (claim(json!({}), "Bound", "pv1"), false, Ok("pv1")),
        (claim(gone, "Bound", "pv1"), false, Err("error processing PVC shop/c: PVC is being deleted")),
        (claim(protected, "Bound", "pv1"), false, Ok("pv1")),
        (claim(json!({}), "Pending", "pv1"), false, Err("error processing PVC shop/c: PVC is not bound")),
        (claim(json!({}), "Bound", ""), false, Err("error processing PVC shop/c: PVC has empty pvc.Spec.VolumeName")),
        (claim(json!({ "ownerReferences": own }), "Bound", "pv1"), true, Ok("pv1")),
        (claim(json!({ "ownerReferences": others }), "Bound", "pv1"), true, Err(not_owner)),
        (claim(json!({ "ownerReferences": loose }), "Bound", "pv1"), true, Err(not_owner)),
        (claim(json!({}), "Bound", "pv1"), true, Err(not_owner)),
    ] {
        let name = ClaimName { name: "c".into(), read_only: false, is_ephemeral };
        let got = volume_name(&pod, &name, &found);
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{found:?}");
    }
}

#[test]
fn a_volume_must_be_bound_to_that_very_claim() {
    let claim = claim(json!({ "uid": "c1" }), "Bound", "pv1");
    let none = "found PV object pv1 but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim";
    let other = "found PV object pv1 but its pv.Spec.ClaimRef.UID c0 does not point to claim.UID c1";
    for (spec, want) in [
        (json!({ "claimRef": { "uid": "c1" } }), Ok(())),
        (json!({}), Err(none.to_owned())),
        (json!({ "claimRef": { "uid": "c0" } }), Err(other.to_owned())),
    ] {
        assert_eq!(check_bound(&claim, &persistent(spec, json!({}))), want);
    }
}

#[test]
fn a_device_is_no_directory() {
    let container = |field: &str, key: &str| json!({ "name": "c", field: [{ "name": "v", key: "/v" }] });
    let (mounts, devices) = (container("volumeMounts", "mountPath"), container("volumeDevices", "devicePath"));
    let in_mounts = "volume v has volumeMode Block, but is specified in volumeMounts";
    let in_devices = "volume v has volumeMode Filesystem, but is specified in volumeDevices";
    for (containers, mode, want) in [
        (json!([mounts]), Mode::Filesystem, Ok(())),
        (json!([devices]), Mode::Block, Ok(())),
        (json!([mounts]), Mode::Block, Err(in_mounts.to_owned())),
        (json!([devices]), Mode::Filesystem, Err(in_devices.to_owned())),
        (json!([mounts, devices]), Mode::Block, Err(in_mounts.to_owned())),
    ] {
        assert_eq!(check_use(&pod(json!({ "containers": containers })), "v", mode), want);
        let spec = json!({ "containers": [{ "name": "x" }], "initContainers": containers });
        assert_eq!(check_use(&pod(spec), "v", mode), want, "of init containers");
    }
}

#[test]
fn a_volume_is_where_its_affinity_says() {
    let affinity = json!({ "required": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a", "b"] }] },
    ] } });
    let labels = |zone: &str| BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
    let volume = persistent(json!({ "nodeAffinity": affinity }), json!({}));
    assert_eq!(check_affinity(&volume, "n", &labels("b")), Ok(()));
    assert_eq!(check_affinity(&volume, "n", &labels("c")), Err("no matching NodeSelectorTerms".to_owned()));
    assert_eq!(check_affinity(&persistent(json!({}), json!({})), "n", &labels("c")), Ok(()));
}
