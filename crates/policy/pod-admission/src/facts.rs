//! What admission needs to know of the node.

use std::collections::BTreeMap;

use model::core::{Node, Taint};
use model::node::Pressure;
use model::quantity::Quantity;
use model::resources::ResourceList;

/// The node as admission sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// Name; empty: unknown, every `spec.nodeName` fits.
    pub name: String,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// `spec.taints`; only `NoExecute` ones count.
    pub taints: Vec<Taint>,
    /// Allocatable amounts, `pods` included. What is not in here is not there.
    pub allocatable: ResourceList,
    /// What runs short now.
    pub pressures: Vec<Pressure>,
    /// Patterns of `allowedUnsafeSysctls`: a name, or a prefix that ends with `*`.
    pub unsafe_sysctls: Vec<String>,
    /// Major and minor version of the kernel, which some safe sysctls depend on; unknown: new enough.
    pub kernel: Option<(u32, u32)>,
    /// `status.features.supplementalGroupsPolicy`.
    pub supplemental_groups_policy: bool,
    /// `status.declaredFeatures`; absent: the gate is off and nothing is checked.
    pub declared_features: Option<Vec<String>>,
    /// AppArmor is on in the kernel.
    pub apparmor: bool,
    /// Gate PodLevelResources.
    pub pod_level_resources: bool,
    /// Containers may use swap (`memorySwap.swapBehavior: LimitedSwap`, on cgroup v2).
    pub limited_swap: bool,
    /// The machine is going down.
    pub shutting_down: bool,
}

impl Default for NodeFacts {
    /// A node with nothing to give, no labels, no taints, and no feature switched off.
    fn default() -> Self {
        Self {
            name: String::new(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            allocatable: ResourceList::new(),
            pressures: Vec::new(),
            unsafe_sysctls: Vec::new(),
            kernel: None,
            supplemental_groups_policy: false,
            declared_features: None,
            apparmor: true,
            pod_level_resources: true,
            limited_swap: false,
            shutting_down: false,
        }
    }
}

impl NodeFacts {
    /// What a Node object says. Sysctl patterns, AppArmor, gates and shutdown are not in it: set them afterwards. The
    /// pressures are those of its conditions; whoever knows them first-hand replaces them.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        let status = node.status.as_ref();
        let allocatable = status.and_then(|s| s.allocatable.as_ref()).into_iter().flatten();
        let conditions = || status.and_then(|s| s.conditions.as_ref()).into_iter().flatten();
        let true_of = |p: Pressure| conditions().any(|c| c.type_ == p.as_str() && c.status == "True");
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default(),
            allocatable: allocatable.filter_map(|(k, q)| Some((k.clone(), Quantity::try_from(q).ok()?))).collect(),
            pressures: Pressure::ALL.into_iter().filter(|p| true_of(*p)).collect(),
            kernel: status.and_then(|s| s.node_info.as_ref()).and_then(|i| kernel(&i.kernel_version)),
            supplemental_groups_policy: status
                .and_then(|s| s.features.as_ref())
                .and_then(|f| f.supplemental_groups_policy)
                .unwrap_or(false),
            declared_features: status.and_then(|s| s.declared_features.clone()),
            ..Self::default()
        }
    }
}

/// `6.1.0-18-amd64` is (6, 1).
fn kernel(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
