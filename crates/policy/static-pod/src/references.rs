//! Static pods run before and without an API server, so they may not refer to its objects (gate
//! PreventStaticPodAPIReferences, on since 1.34).

use model::core::{Container, Pod, Volume};
use model::pod::{init_containers, regular_containers};

use crate::error::{Fault, FieldError};

/// Every reference to an API object, each with its path.
pub(crate) fn api_references(pod: &Pod) -> Vec<FieldError> {
    let mut found = Vec::new();
    let Some(spec) = &pod.spec else { return found };
    if spec.service_account_name.as_deref().is_some_and(|n| !n.is_empty()) {
        push(&mut found, "spec.serviceAccountName", "serviceaccounts");
    }
    for i in 0..spec.image_pull_secrets.iter().flatten().count() {
        push(&mut found, &format!("spec.imagePullSecrets[{i}]"), "secrets");
    }
    for (i, c) in init_containers(pod).iter().enumerate() {
        container(&mut found, &format!("spec.initContainers[{i}]"), c);
    }
    for (i, c) in regular_containers(pod).iter().enumerate() {
        container(&mut found, &format!("spec.containers[{i}]"), c);
    }
    if spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        push(&mut found, "spec.resourceClaims", "resourceclaims");
    }
    for (i, v) in spec.volumes.iter().flatten().enumerate() {
        volume(&mut found, &format!("spec.volumes[{i}]"), v);
    }
    found
}

fn push(found: &mut Vec<FieldError>, path: &str, resource: &str) {
    found.push(FieldError::new(path, Fault::Forbidden, format!("static pods may not reference {resource}")));
}

fn container(found: &mut Vec<FieldError>, path: &str, c: &Container) {
    for (i, from) in c.env_from.iter().flatten().enumerate() {
        if from.secret_ref.is_some() {
            push(found, &format!("{path}.envFrom[{i}].secretRef"), "secrets");
        }
        if from.config_map_ref.is_some() {
            push(found, &format!("{path}.envFrom[{i}].configMapRef"), "configmaps");
        }
    }
    for (i, env) in c.env.iter().flatten().enumerate() {
        let Some(from) = &env.value_from else { continue };
        if from.secret_key_ref.is_some() {
            push(found, &format!("{path}.env[{i}].valueFrom.secretKeyRef"), "secrets");
        }
        if from.config_map_key_ref.is_some() {
            push(found, &format!("{path}.env[{i}].valueFrom.configMapKeyRef"), "configmaps");
        }
    }
}

fn volume(found: &mut Vec<FieldError>, path: &str, v: &Volume) {
    let refused = [
        ("configMap", v.config_map.is_some(), "configmaps (via configmap volumes)"),
        ("secret", v.secret.is_some(), "secrets (via secret volumes)"),
        ("csi", v.csi.is_some(), "csidrivers (via CSI volumes)"),
        ("glusterfs", v.glusterfs.is_some(), "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", v.persistent_volume_claim.is_some(), "persistentvolumeclaims"),
        ("ephemeral", v.ephemeral.is_some(), "persistentvolumeclaims (via ephemeral volumes)"),
        ("azureFile", v.azure_file.is_some(), "secrets (via azureFile volumes)"),
        // The rest need a secret only when they name one.
        ("cephfs.secretRef", v.cephfs.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
        ("cinder.secretRef", v.cinder.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
        ("flexVolume.secretRef", v.flex_volume.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
        ("iscsi.secretRef", v.iscsi.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
        ("rbd.secretRef", v.rbd.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
        ("scaleIO.secretRef", v.scale_io.is_some(), "secrets"),
        ("storageos.secretRef", v.storageos.as_ref().is_some_and(|s| s.secret_ref.is_some()), "secrets"),
    ];
    for (field, present, resource) in refused {
        if present {
            push(found, &format!("{path}.{field}"), resource);
        }
    }
    for (i, s) in v.projected.iter().flat_map(|p| p.sources.iter().flatten()).enumerate() {
        let refused = [
            ("configMap", s.config_map.is_some(), "configmaps (via projected volumes)"),
            ("secret", s.secret.is_some(), "secrets (via projected volumes)"),
            ("serviceAccountToken", s.service_account_token.is_some(), "serviceaccounts (via projected volumes)"),
            ("clusterTrustBundle", s.cluster_trust_bundle.is_some(), "clustertrustbundles"),
            ("podCertificate", s.pod_certificate.is_some(), "podcertificates"),
        ];
        for (field, present, resource) in refused {
            if present {
                push(found, &format!("{path}.projected.sources[{i}].{field}"), resource);
            }
        }
    }
}
