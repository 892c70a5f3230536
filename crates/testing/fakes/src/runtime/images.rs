//! The image store of the fake runtime.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use cri_api::v1;

/// An image that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeImage {
    /// Full name with tag.
    pub name: String,
    /// `sha256:...`.
    pub id: String,
    /// `repo@sha256:...`.
    pub digest: String,
    /// Bytes.
    pub size: u64,
    /// Numeric user of the image.
    pub uid: Option<i64>,
    /// User name of the image.
    pub username: String,
    /// The runtime keeps it for itself.
    pub pinned: bool,
}

impl FakeImage {
    /// An image under `name`; id and digest follow from the name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = full_name(name);
        let repo = name.rsplit_once(':').map_or(name.as_str(), |(repo, _)| repo);
        Self {
            id: format!("sha256:{}", hex(&name, "config")),
            digest: format!("{repo}@sha256:{}", hex(&name, "manifest")),
            name,
            size: 1 << 20,
            uid: None,
            username: String::new(),
            pinned: false,
        }
    }

    /// Sets the numeric user.
    #[must_use]
    pub fn uid(mut self, uid: i64) -> Self {
        self.uid = Some(uid);
        self
    }

    /// Sets the user name.
    #[must_use]
    pub fn username(mut self, name: &str) -> Self {
        name.clone_into(&mut self.username);
        self
    }

    /// The runtime keeps it for itself.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.pinned = true;
        self
    }

    pub(super) fn to_cri(&self) -> v1::Image {
        v1::Image {
            id: self.id.clone(),
            repo_tags: vec![self.name.clone()],
            repo_digests: vec![self.digest.clone()],
            size: self.size,
            uid: self.uid.map(|value| v1::Int64Value { value }),
            username: self.username.clone(),
            spec: None,
            pinned: self.pinned,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Images(BTreeMap<String, FakeImage>);

impl Images {
    pub(super) fn add(&mut self, image: FakeImage) {
        self.0.insert(image.name.clone(), image);
    }

    /// By name, digest or id.
    pub(super) fn find(&self, reference: &str) -> Option<&FakeImage> {
        self.0
            .get(&full_name(reference))
            .or_else(|| self.0.values().find(|i| i.id == reference || i.digest == reference))
    }

    pub(super) fn remove(&mut self, reference: &str) {
        if let Some(name) = self.find(reference).map(|i| i.name.clone()) {
            self.0.remove(&name);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &FakeImage> {
        self.0.values()
    }
}

/// As registries read it: default host and tag filled in.
pub(super) fn full_name(reference: &str) -> String {
    let first = reference.split('/').next().unwrap_or_default();
    let has_host = reference.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    let mut name = match (has_host, reference.contains('/')) {
        (true, _) => reference.to_owned(),
        (false, true) => format!("docker.io/{reference}"),
        (false, false) => format!("docker.io/library/{reference}"),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    if !last.contains([':', '@']) {
        name.push_str(":latest");
    }
    name
}

fn hex(name: &str, salt: &str) -> String {
    (0..4u8)
        .map(|part| {
            let mut h = DefaultHasher::new();
            (name, salt, part).hash(&mut h);
            format!("{:016x}", h.finish())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::full_name;

    #[test]
    fn names_are_completed_as_registries_do() {
        let rows = [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1", "docker.io/library/busybox:1"),
            ("team/app:1", "docker.io/team/app:1"),
            ("registry.k8s.io/pause:3.6", "registry.k8s.io/pause:3.6"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
            ("x@sha256:0", "docker.io/library/x@sha256:0"),
        ];
        for (given, want) in rows {
            assert_eq!(full_name(given), want, "{given}");
        }
    }
}
