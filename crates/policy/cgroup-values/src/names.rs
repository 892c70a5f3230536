//! Names of cgroups and how each driver spells them as paths (node-and-resources 1.2).

use model::PodUid;
use model::node::CgroupDriver;
use model::resources::QosClass;

/// Driver-neutral name: the components from the root of the hierarchy down.
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord, Hash, Default)]
pub struct CgroupName(Vec<String>);

impl CgroupName {
    /// From the configured `cgroupRoot`, which is always spelled as plain directories. Empty and `/` are the top.
    #[must_use]
    pub fn from_root(cgroup_root: &str) -> Self {
        Self(cgroup_root.split('/').filter(|c| !c.is_empty()).map(str::to_owned).collect())
    }

    /// From a configured name of a cgroup that the operator made (`systemReservedCgroup`), in the spelling of the driver: a path,
    /// or the name of a slice, with or without the slices that it is in.
    #[must_use]
    pub fn from_config(name: &str, driver: CgroupDriver) -> Self {
        if driver == CgroupDriver::Cgroupfs {
            return Self::from_root(name);
        }
        let slice = name.rsplit('/').next().unwrap_or_default();
        let stem = slice.strip_suffix(".slice").unwrap_or(slice);
        Self(stem.split('-').filter(|c| !c.is_empty()).map(|c| c.replace('_', "-")).collect())
    }

    /// This name with one component more.
    #[must_use]
    pub fn child(&self, component: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(component.to_owned());
        Self(parts)
    }

    /// Path below the cgroup mount as `driver` spells it; starts with `/`. This is also the CRI's `cgroup_parent`.
    #[must_use]
    pub fn path(&self, driver: CgroupDriver) -> String {
        match driver {
            CgroupDriver::Cgroupfs => format!("/{}", self.0.join("/")),
            CgroupDriver::Systemd => self.systemd_path(),
        }
    }

    /// systemd reads `-` as a level, so a dash inside a component becomes `_`, and each level repeats its parents.
    fn systemd_path(&self) -> String {
        if self.0.is_empty() {
            return "/".to_owned();
        }
        let mut path = String::new();
        let mut stem = String::new();
        for part in &self.0 {
            if !stem.is_empty() {
                stem.push('-');
            }
            stem.push_str(&part.replace('-', "_"));
            path.push('/');
            path.push_str(&stem);
            path.push_str(".slice");
        }
        path
    }
}

/// Where this node's pods live: the names of the tree under one `cgroupRoot`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodTree {
    root: CgroupName,
    driver: CgroupDriver,
}

impl PodTree {
    /// The tree under `cgroup_root` as `driver` spells it.
    #[must_use]
    pub fn new(cgroup_root: &str, driver: CgroupDriver) -> Self {
        Self { root: CgroupName::from_root(cgroup_root), driver }
    }

    /// Path of the configured root itself; it must exist and is never made, limited or removed by the node. Always
    /// spelled as plain directories.
    #[must_use]
    pub fn root(&self) -> String {
        self.root.path(CgroupDriver::Cgroupfs)
    }

    /// Path of `kubepods`, which holds all pods.
    #[must_use]
    pub fn kubepods(&self) -> String {
        self.tier_name(QosClass::Guaranteed).path(self.driver)
    }

    /// Path of the tier of a class. Guaranteed pods have no tier of their own: they hang off `kubepods`.
    #[must_use]
    pub fn tier(&self, qos: QosClass) -> String {
        self.tier_name(qos).path(self.driver)
    }

    /// Path of a pod's cgroup.
    #[must_use]
    pub fn pod(&self, qos: QosClass, uid: &PodUid) -> String {
        self.tier_name(qos).child(&format!("pod{uid}")).path(self.driver)
    }

    /// Pod whose cgroup a directory in a tier is, by the directory's own name. `None`: not a pod's.
    #[must_use]
    pub fn pod_of_dir(&self, dir: &str) -> Option<PodUid> {
        let uid = match self.driver {
            CgroupDriver::Cgroupfs => dir.strip_prefix("pod")?.to_owned(),
            CgroupDriver::Systemd => {
                let stem = dir.strip_suffix(".slice")?;
                stem.rsplit('-').next()?.strip_prefix("pod")?.replace('_', "-")
            }
        };
        (!uid.is_empty()).then(|| PodUid::from(uid))
    }

    fn tier_name(&self, qos: QosClass) -> CgroupName {
        let kubepods = self.root.child("kubepods");
        match qos {
            QosClass::Guaranteed => kubepods,
            QosClass::Burstable => kubepods.child("burstable"),
            QosClass::BestEffort => kubepods.child("besteffort"),
        }
    }
}
