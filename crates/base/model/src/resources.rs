//! Requests, limits and QoS of a pod.
//!
//! Reads what the specification says, after the API's defaulting (which copies limits into missing requests; for static
//! pods the config source does it). Texts that are no quantities count as absent: a source refuses them earlier.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use serde::{Deserialize, Serialize};

use crate::core::{Container, Pod, ResourceRequirements};
use crate::pod;
use crate::quantity::Quantity;

#[cfg(test)]
mod tests;

/// Resource name of CPU time, in cores.
pub const CPU: &str = "cpu";
/// Resource name of memory, in bytes.
pub const MEMORY: &str = "memory";
/// Resource name of local disk space, in bytes.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Prefix of huge page resources, followed by the page size as a quantity (`2Mi`).
pub const HUGEPAGES_PREFIX: &str = "hugepages-";

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Limits of one cgroup, the same words for v1 and v2. `None` and absent keys leave what is there alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CgroupValues {
    /// CPU shares in v1 terms, 2 to 262144; v2 gets the weight that they stand for.
    pub cpu_shares: Option<u64>,
    /// CFS quota in microseconds per period; -1 means none.
    pub cpu_quota_us: Option<i64>,
    /// CFS period in microseconds.
    pub cpu_period_us: Option<u64>,
    /// Memory limit in bytes; -1 means none.
    pub memory_limit_bytes: Option<i64>,
    /// Bytes that are never taken away (`memory.min`); v1 has none.
    pub memory_min_bytes: Option<i64>,
    /// Bytes that are taken away last (`memory.low`); v1 has none.
    pub memory_low_bytes: Option<i64>,
    /// Most processes and threads; -1 means no limit.
    pub pids_max: Option<i64>,
    /// Limit in bytes by huge page size in bytes.
    pub hugetlb_bytes: BTreeMap<u64, u64>,
}

/// Quality of service of a pod: who gives way first when memory runs short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// Limits for CPU and memory everywhere, equal to the requests.
    Guaranteed,
    /// Neither of the others.
    Burstable,
    /// No request and no limit at all.
    BestEffort,
}

impl QosClass {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            QosClass::Guaranteed => "Guaranteed",
            QosClass::Burstable => "Burstable",
            QosClass::BestEffort => "BestEffort",
        }
    }

    /// Parses the API's word.
    #[must_use]
    pub fn parse(s: &str) -> Option<Self> {
        match s {
            "Guaranteed" => Some(QosClass::Guaranteed),
            "Burstable" => Some(QosClass::Burstable),
            "BestEffort" => Some(QosClass::BestEffort),
            _ => None,
        }
    }
}

/// QoS class: the one in the status when there is one (a pod never changes class), else the one that the spec gives
/// (node-and-resources 1.5).
#[must_use]
pub fn qos_class(pod: &Pod) -> QosClass {
    let known = pod.status.as_ref().and_then(|s| s.qos_class.as_deref()).and_then(QosClass::parse);
    known.unwrap_or_else(|| computed_qos_class(pod))
}

/// QoS class from the spec alone.
#[must_use]
pub fn computed_qos_class(pod: &Pod) -> QosClass {
    let mut tally = QosTally { guaranteed: true, ..QosTally::default() };
    if let Some(level) = pod_level(pod) {
        tally.add(Some(level));
    } else {
        for c in pod::init_containers(pod).iter().chain(pod::regular_containers(pod)) {
            tally.add(c.resources.as_ref());
        }
    }
    tally.class()
}

/// Sums of CPU and memory; what is not positive does not count.
#[derive(Default)]
struct QosTally {
    requests: [Quantity; 2],
    limits: [Quantity; 2],
    guaranteed: bool,
}

impl QosTally {
    fn add(&mut self, resources: Option<&ResourceRequirements>) {
        let counts = |amounts: Option<&BTreeMap<String, ApiQuantity>>| {
            [CPU, MEMORY].map(|name| one(amounts, name).unwrap_or_default().max(Quantity::ZERO))
        };
        let limits = counts(resources.and_then(|r| r.limits.as_ref()));
        let requests = counts(resources.and_then(|r| r.requests.as_ref()));
        self.guaranteed &= limits.iter().all(|limit| !limit.is_zero());
        for at in 0..2 {
            self.limits[at] = self.limits[at].plus(limits[at]);
            self.requests[at] = self.requests[at].plus(requests[at]);
        }
    }

    fn class(&self) -> QosClass {
        if self.requests.iter().chain(&self.limits).all(|sum| sum.is_zero()) {
            QosClass::BestEffort
        } else if self.guaranteed && self.requests == self.limits {
            QosClass::Guaranteed
        } else {
            QosClass::Burstable
        }
    }
}

/// What a container requests.
#[must_use]
pub fn requests(c: &Container) -> ResourceList {
    requests_of(c.resources.as_ref())
}

/// What a container may use at most.
#[must_use]
pub fn limits(c: &Container) -> ResourceList {
    limits_of(c.resources.as_ref())
}

/// One requested amount of a container.
#[must_use]
pub fn request(c: &Container, name: &str) -> Option<Quantity> {
    one(c.resources.as_ref()?.requests.as_ref(), name)
}

/// One limit of a container.
#[must_use]
pub fn limit(c: &Container, name: &str) -> Option<Quantity> {
    one(c.resources.as_ref()?.limits.as_ref(), name)
}

/// Pod-level resources (`spec.resources`) when they name any amount.
#[must_use]
pub fn pod_level(pod: &Pod) -> Option<&ResourceRequirements> {
    let r = pod.spec.as_ref()?.resources.as_ref()?;
    let any = |m: &Option<BTreeMap<String, ApiQuantity>>| {
        m.as_ref().is_some_and(|m| m.keys().any(|k| is_pod_level_resource(k)))
    };
    (any(&r.requests) || any(&r.limits)).then_some(r)
}

/// One pod-level requested amount.
#[must_use]
pub fn pod_level_request(pod: &Pod, name: &str) -> Option<Quantity> {
    one(pod_level(pod)?.requests.as_ref(), name)
}

/// One pod-level limit.
#[must_use]
pub fn pod_level_limit(pod: &Pod, name: &str) -> Option<Quantity> {
    one(pod_level(pod)?.limits.as_ref(), name)
}

/// Resources that `spec.resources` may name.
#[must_use]
pub fn is_pod_level_resource(name: &str) -> bool {
    name == CPU || name == MEMORY || name.starts_with(HUGEPAGES_PREFIX)
}

/// `spec.overhead`: what the runtime itself needs for the pod.
#[must_use]
pub fn overhead(pod: &Pod) -> ResourceList {
    list(pod.spec.as_ref().and_then(|s| s.overhead.as_ref()))
}

/// What the whole pod requests, overhead included (node-and-resources 1.6).
#[must_use]
pub fn pod_requests(pod: &Pod) -> ResourceList {
    let mut total = pod_requests_without_overhead(pod);
    add(&mut total, overhead(pod));
    total
}

/// What the whole pod requests for its containers.
#[must_use]
pub fn pod_requests_without_overhead(pod: &Pod) -> ResourceList {
    let mut total = container_requests(pod);
    override_with(&mut total, &requests_of(pod_level(pod)));
    total
}

/// What the containers together request at their peak, whatever the pod level says.
#[must_use]
pub fn container_requests(pod: &Pod) -> ResourceList {
    aggregate(pod, |r| r.requests.as_ref())
}

/// What the whole pod may use at most. Overhead counts only where there is a limit already. A resource that some
/// container does not limit is in here too; see [`every_container_limits`].
#[must_use]
pub fn pod_limits(pod: &Pod) -> ResourceList {
    let mut total = pod_limits_without_overhead(pod);
    for (name, extra) in overhead(pod) {
        if let Some(q) = total.get_mut(&name).filter(|q| !q.is_zero()) {
            *q = q.plus(extra);
        }
    }
    total
}

/// What the containers of the pod may use at most.
#[must_use]
pub fn pod_limits_without_overhead(pod: &Pod) -> ResourceList {
    let mut total = aggregate(pod, |r| r.limits.as_ref());
    override_with(&mut total, &limits_of(pod_level(pod)));
    total
}

/// Whether every init and regular container limits `name`, or the pod as a whole does.
#[must_use]
pub fn every_container_limits(pod: &Pod, name: &str) -> bool {
    pod_level_limit(pod, name).is_some_and(|q| !q.is_zero())
        || pod::init_containers(pod)
            .iter()
            .chain(pod::regular_containers(pod))
            .all(|c| limit(c, name).is_some_and(|q| !q.is_zero()))
}

/// Amounts by the names that a specification gives them.
type Sums<'a> = BTreeMap<&'a str, Quantity>;

/// The most that runs at one time: all regular containers with all sidecars, or one init container with the sidecars
/// that were started before it.
fn aggregate<'a>(
    pod: &'a Pod,
    of: fn(&'a ResourceRequirements) -> Option<&'a BTreeMap<String, ApiQuantity>>,
) -> ResourceList {
    let own = |c: &'a Container| amounts(c.resources.as_ref().and_then(of));
    let mut running = Sums::new();
    for c in pod::regular_containers(pod) {
        add(&mut running, own(c));
    }
    let (mut sidecars, mut peak) = (Sums::new(), Sums::new());
    for c in pod::init_containers(pod) {
        let mut now = sidecars.clone();
        add(&mut now, own(c));
        if pod::is_sidecar(c) {
            add(&mut running, own(c));
            sidecars.clone_from(&now);
        }
        raise(&mut peak, now);
    }
    raise(&mut running, peak);
    running.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect()
}

fn add<K: Ord>(to: &mut BTreeMap<K, Quantity>, more: impl IntoIterator<Item = (K, Quantity)>) {
    for (name, amount) in more {
        let sum = to.entry(name).or_default();
        *sum = sum.plus(amount);
    }
}

fn raise<'a>(to: &mut Sums<'a>, other: Sums<'a>) {
    for (name, amount) in other {
        let most = to.entry(name).or_insert(amount);
        *most = amount.max(*most);
    }
}

pub(crate) fn requests_of(r: Option<&ResourceRequirements>) -> ResourceList {
    list(r.and_then(|r| r.requests.as_ref()))
}

pub(crate) fn limits_of(r: Option<&ResourceRequirements>) -> ResourceList {
    list(r.and_then(|r| r.limits.as_ref()))
}

fn list(m: Option<&BTreeMap<String, ApiQuantity>>) -> ResourceList {
    amounts(m).map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn amounts(m: Option<&BTreeMap<String, ApiQuantity>>) -> impl Iterator<Item = (&str, Quantity)> {
    m.into_iter().flatten().filter_map(|(name, text)| Some((name.as_str(), Quantity::try_from(text).ok()?)))
}

fn one(m: Option<&BTreeMap<String, ApiQuantity>>, name: &str) -> Option<Quantity> {
    Quantity::try_from(m?.get(name)?).ok()
}

fn override_with(total: &mut ResourceList, level: &ResourceList) {
    for (k, q) in level.iter().filter(|(k, _)| is_pod_level_resource(k)) {
        total.insert(k.clone(), *q);
    }
}
