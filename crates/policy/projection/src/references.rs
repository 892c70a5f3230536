//! Which objects of its namespace and of the cluster a pod needs (node-and-resources 6.9, last paragraph).

use std::collections::BTreeSet;

use model::core::{EnvFromSource, EnvVarSource, Pod, PodSpec, Volume, VolumeProjection};
use model::object::{ObjectKind, ObjectRef};
use model::pod;

/// Every object that the pod names, sorted, each once: ConfigMaps and Secrets of `env`, `envFrom`, volumes and projections,
/// `imagePullSecrets` and secrets of drivers, the ClusterTrustBundles, and the certificates of the pod. Objects that may be absent
/// (`optional`) are in, since they are watched too. Volumes count whether or not a container uses them, as for a kubelet.
#[must_use]
pub fn references(pod: &Pod) -> Vec<ObjectRef> {
    let mut found = Found::default();
    if let Some(spec) = &pod.spec {
        found.spec(spec);
    }
    let namespace = pod::namespace(pod);
    let of = |(kind, name): (ObjectKind, String)| ObjectRef { kind, namespace: namespace.to_owned(), name };
    let bundles = found.trust_bundles.then(ObjectRef::trust_bundles);
    let certificates =
        found.certificates.iter().map(|(v, i)| ObjectRef::pod_certificate(namespace, &pod::uid(pod), v, *i));
    let certificates: BTreeSet<ObjectRef> = certificates.collect();
    found.named.into_iter().map(of).chain(bundles).chain(certificates).collect()
}

/// The service account whose tokens the pod carries; `default` when it names none.
#[must_use]
pub fn service_account(pod: &Pod) -> &str {
    let name = pod.spec.as_ref().and_then(|s| s.service_account_name.as_deref());
    name.filter(|n| !n.is_empty()).unwrap_or("default")
}

fn sources(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|p| p.sources.iter().flatten())
}

#[derive(Default)]
struct Found {
    named: BTreeSet<(ObjectKind, String)>,
    trust_bundles: bool,
    /// Volume, and place among its sources.
    certificates: Vec<(String, usize)>,
}

impl Found {
    fn add(&mut self, kind: ObjectKind, name: &str) {
        if !name.is_empty() {
            self.named.insert((kind, name.to_owned()));
        }
    }

    fn secret(&mut self, name: Option<&str>) {
        self.add(ObjectKind::Secret, name.unwrap_or_default());
    }

    fn spec(&mut self, spec: &PodSpec) {
        for secret in spec.image_pull_secrets.iter().flatten() {
            self.secret(Some(&secret.name));
        }
        for c in spec.init_containers.iter().flatten().chain(&spec.containers) {
            self.container(c.env_from.as_deref(), c.env.iter().flatten().filter_map(|e| e.value_from.as_ref()));
        }
        for c in spec.ephemeral_containers.iter().flatten() {
            self.container(c.env_from.as_deref(), c.env.iter().flatten().filter_map(|e| e.value_from.as_ref()));
        }
        for volume in spec.volumes.iter().flatten() {
            self.volume(volume);
            self.driver(volume);
        }
    }

    fn container<'a>(&mut self, from: Option<&[EnvFromSource]>, values: impl Iterator<Item = &'a EnvVarSource>) {
        for source in from.unwrap_or_default() {
            self.add(ObjectKind::ConfigMap, source.config_map_ref.as_ref().map_or("", |r| &r.name));
            self.secret(source.secret_ref.as_ref().map(|r| r.name.as_str()));
        }
        for value in values {
            self.add(ObjectKind::ConfigMap, value.config_map_key_ref.as_ref().map_or("", |r| &r.name));
            self.secret(value.secret_key_ref.as_ref().map(|r| r.name.as_str()));
        }
    }

    fn volume(&mut self, volume: &Volume) {
        self.add(ObjectKind::ConfigMap, volume.config_map.as_ref().map_or("", |v| &v.name));
        self.secret(volume.secret.as_ref().and_then(|v| v.secret_name.as_deref()));
        for (index, source) in sources(volume).enumerate() {
            self.certificates.extend(source.pod_certificate.iter().map(|_| (volume.name.clone(), index)));
            self.add(ObjectKind::ConfigMap, source.config_map.as_ref().map_or("", |r| &r.name));
            self.secret(source.secret.as_ref().map(|r| r.name.as_str()));
            self.trust_bundles |= source.cluster_trust_bundle.is_some();
        }
    }

    /// Secrets that volume drivers are handed.
    fn driver(&mut self, v: &Volume) {
        let local = [
            v.csi.as_ref().and_then(|s| s.node_publish_secret_ref.as_ref()),
            v.cephfs.as_ref().and_then(|s| s.secret_ref.as_ref()),
            v.cinder.as_ref().and_then(|s| s.secret_ref.as_ref()),
            v.flex_volume.as_ref().and_then(|s| s.secret_ref.as_ref()),
            v.rbd.as_ref().and_then(|s| s.secret_ref.as_ref()),
            v.scale_io.as_ref().map(|s| &s.secret_ref),
            v.iscsi.as_ref().and_then(|s| s.secret_ref.as_ref()),
            v.storageos.as_ref().and_then(|s| s.secret_ref.as_ref()),
        ];
        for secret in local.into_iter().flatten() {
            self.secret(Some(&secret.name));
        }
        self.secret(v.azure_file.as_ref().map(|s| s.secret_name.as_str()));
    }
}

#[cfg(test)]
mod tests;
