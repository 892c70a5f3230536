//! What a pod's specification says of its volumes: which are used, and of what kind. Pure.

use std::collections::BTreeSet;

use model::core::{Pod, Volume};
use model::pod;
use model::quantity::Quantity;
use model::resources::{self, HUGEPAGES_PREFIX, MEMORY, ResourceList};
use volume_plan::migration;

use crate::layout::{CONFIG_MAP, DOWNWARD_API, PROJECTED, SECRET};

/// What to do for one volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A directory of the pod's own.
    EmptyDir(Medium),
    /// A path of the host.
    HostPath {
        /// As written.
        path: String,
        /// `type`, may be empty.
        check: String,
    },
    /// Files made of API objects.
    Projected {
        /// Directory name of the kind.
        plugin: &'static str,
        /// What holds the files: those that may be secret never touch the disk.
        medium: Medium,
    },
    /// The image manager pulls it, the runtime mounts it.
    Image,
    /// A claim stands for it, it is one of a CSI driver or of a server, or a disk that is reached over a network.
    Persistent,
    /// Nothing here can set it up; the API's name of the kind.
    Unsupported(&'static str),
}

/// What an emptyDir is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    /// The disk under the root directory.
    Disk,
    /// tmpfs.
    Memory,
    /// hugetlbfs, with the size of a page in bytes.
    HugePages(u64),
    /// It cannot be had; why.
    Refused(String),
}

/// Volumes that some container mounts, in the order of the specification. The others are never set up.
pub(crate) fn used_volumes(pod: &Pod) -> Vec<(&Volume, Kind)> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let ephemeral: Vec<_> = pod::ephemeral_containers(pod).map(|(c, _)| c).collect();
    for c in pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).chain(&ephemeral) {
        used.extend(c.volume_mounts.iter().flatten().map(|m| m.name.clone()));
        used.extend(c.volume_devices.iter().flatten().map(|d| d.name.clone()));
    }
    let all = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    all.filter(|v| used.contains(&v.name)).map(|v| (v, kind(pod, v))).collect()
}

fn kind(pod: &Pod, v: &Volume) -> Kind {
    if let Some(e) = &v.empty_dir {
        return Kind::EmptyDir(medium(pod, e.medium.as_deref().unwrap_or_default()));
    }
    if let Some(h) = &v.host_path {
        return Kind::HostPath { path: h.path.clone(), check: h.type_.clone().unwrap_or_default() };
    }
    if v.image.is_some() {
        return Kind::Image;
    }
    let is_claimed = v.persistent_volume_claim.is_some() || v.ephemeral.is_some();
    let is_remote = v.csi.is_some() || v.nfs.is_some() || v.iscsi.is_some() || v.fc.is_some();
    if is_claimed || is_remote || migration::is_migrated(v) {
        return Kind::Persistent;
    }
    for (there, plugin, medium) in [
        (v.config_map.is_some(), CONFIG_MAP, Medium::Disk),
        (v.secret.is_some(), SECRET, Medium::Memory),
        (v.projected.is_some(), PROJECTED, Medium::Memory),
        (v.downward_api.is_some(), DOWNWARD_API, Medium::Memory),
    ] {
        if there {
            return Kind::Projected { plugin, medium };
        }
    }
    // A volume without a source is an emptyDir: the API's default.
    other_kind(v).map_or(Kind::EmptyDir(Medium::Disk), Kind::Unsupported)
}

fn other_kind(v: &Volume) -> Option<&'static str> {
    let kinds = [
        (v.flex_volume.is_some(), "flexVolume"),
        (v.git_repo.is_some(), "gitRepo"),
        (v.cephfs.is_some(), "cephfs"),
        (v.flocker.is_some(), "flocker"),
        (v.glusterfs.is_some(), "glusterfs"),
        (v.photon_persistent_disk.is_some(), "photonPersistentDisk"),
        (v.quobyte.is_some(), "quobyte"),
        (v.rbd.is_some(), "rbd"),
        (v.scale_io.is_some(), "scaleIO"),
        (v.storageos.is_some(), "storageos"),
    ];
    kinds.into_iter().find(|(there, _)| *there).map(|(_, name)| name)
}

fn medium(pod: &Pod, word: &str) -> Medium {
    match word {
        "" => Medium::Disk,
        "Memory" => Medium::Memory,
        _ => match word.strip_prefix("HugePages") {
            Some(size) => huge_pages(pod, size).unwrap_or_else(Medium::Refused),
            None => Medium::Refused(format!("unknown storage medium {word:?}")),
        },
    }
}

/// `size` is empty, or `-2Mi`. The pages must be requested by a container or the pod.
fn huge_pages(pod: &Pod, size: &str) -> Result<Medium, String> {
    let requested = requested_page_sizes(pod);
    if size.is_empty() {
        return match (requested.first(), requested.len()) {
            (None, _) => Err("huge pages storage requested, but no container requests huge pages".to_owned()),
            (Some(only), 1) => Ok(Medium::HugePages(*only)),
            _ => Err("medium \"HugePages\" is not unique: containers request several page sizes".to_owned()),
        };
    }
    let wanted =
        size.strip_prefix('-').and_then(|s| s.parse::<Quantity>().ok()).and_then(|q| u64::try_from(q.value()).ok());
    match wanted {
        Some(bytes) if requested.contains(&bytes) => Ok(Medium::HugePages(bytes)),
        Some(_) => Err(format!("medium \"HugePages{size}\", but no container requests pages of that size")),
        None => Err(format!("unknown storage medium \"HugePages{size}\"")),
    }
}

fn requested_page_sizes(pod: &Pod) -> BTreeSet<u64> {
    let mut lists: Vec<ResourceList> = vec![resources::pod_requests_without_overhead(pod)];
    lists.extend(pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).map(resources::requests));
    let sizes = lists.iter().flat_map(|l| l.iter()).filter(|(_, q)| !q.is_zero()).filter_map(|(name, _)| {
        let size: Quantity = name.strip_prefix(HUGEPAGES_PREFIX)?.parse().ok()?;
        u64::try_from(size.value()).ok()
    });
    sizes.collect()
}

/// Size of a tmpfs: the least of what the node grants to pods, what the pod may use, and what the volume asks for; each only
/// where it is set.
pub(crate) fn tmpfs_size(pod: &Pod, volume: &Volume, allocatable_bytes: i64) -> Option<u64> {
    let pod_limit = resources::every_container_limits(pod, MEMORY)
        .then(|| resources::pod_limits(pod).get(MEMORY).map(|q| q.value()))
        .flatten();
    let size_limit = volume.empty_dir.as_ref().and_then(|e| Quantity::try_from(e.size_limit.as_ref()?).ok());
    [Some(allocatable_bytes), pod_limit, size_limit.map(Quantity::value)]
        .into_iter()
        .flatten()
        .filter_map(|b| u64::try_from(b).ok().filter(|b| *b > 0))
        .min()
}

/// `securityContext.fsGroup`.
pub(crate) fn fs_group(pod: &Pod) -> Option<u32> {
    let group = pod.spec.as_ref()?.security_context.as_ref()?.fs_group?;
    u32::try_from(group).ok()
}

/// Whether some container uses a volume that outlives the pod, or that a driver makes.
pub(crate) fn has_persistent(pod: &Pod) -> bool {
    used_volumes(pod).iter().any(|(_, kind)| *kind == Kind::Persistent)
}
