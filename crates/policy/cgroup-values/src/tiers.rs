//! Values of `kubepods` and its tiers that follow from the pods in them (node-and-resources 1.8, 1.9).

use std::collections::BTreeMap;

use model::cgroup::MIN_SHARES;
use model::core::Pod;
use model::resources::{self, CPU, CgroupValues, MEMORY, QosClass};

use crate::{HostFacts, LimitRules, cpu};

/// A huge page limit that limits nothing, as the node writes it on tiers.
pub const HUGETLB_UNLIMITED: u64 = 1 << 62;

/// What is written with each change of the pods, and once a minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tiers {
    /// `kubepods`, in which guaranteed pods are; see also [`crate::tree::kubepods_values`].
    pub kubepods: CgroupValues,
    /// Burstable pods.
    pub burstable: CgroupValues,
    /// BestEffort pods.
    pub best_effort: CgroupValues,
}

impl Tiers {
    /// Bytes that are kept for guaranteed pods (`memory.min`) and for burstable ones (`memory.low`).
    #[must_use]
    pub fn kept(&self) -> (i64, i64) {
        let all = self.kubepods.memory_min_bytes.unwrap_or(0);
        let burstable = self.burstable.memory_low_bytes.unwrap_or(0);
        (all.saturating_sub(burstable), burstable)
    }

    /// Leaves lower classes so much less memory as higher ones request, by `percent`. Nothing where nothing is known of the node.
    fn reserve(&mut self, sums: &Sums, allocatable_bytes: i64, percent: i64) {
        if allocatable_bytes <= 0 {
            return;
        }
        let part = |bytes: i64| bytes.saturating_mul(percent) / 100;
        let burstable = allocatable_bytes.saturating_sub(part(sums.guaranteed_bytes));
        let best_effort = burstable.saturating_sub(part(sums.burstable_bytes));
        self.burstable.memory_limit_bytes = limit(burstable);
        self.best_effort.memory_limit_bytes = limit(best_effort);
    }

    /// The same where a limit could not be set: none is below what is used already (bytes, by tier), so that at least that does
    /// not grow. A use that cannot be read changes nothing.
    #[must_use]
    pub fn at_least(mut self, used: impl Fn(QosClass) -> Option<u64>) -> Self {
        let tiers = [(QosClass::Burstable, &mut self.burstable), (QosClass::BestEffort, &mut self.best_effort)];
        for (class, values) in tiers {
            let used = used(class).map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
            if let (Some(wanted), Some(used)) = (values.memory_limit_bytes, used)
                && used > wanted
            {
                values.memory_limit_bytes = limit(used);
            }
        }
        self
    }
}

/// A limit of nothing is none: the one that is there stays. One that is below that cannot be set.
fn limit(bytes: i64) -> Option<i64> {
    Some(bytes).filter(|bytes| *bytes != 0)
}

/// By the active pods.
#[must_use]
pub fn values<'a>(pods: impl Iterator<Item = &'a Pod>, node: &HostFacts, rules: &LimitRules) -> Tiers {
    let sums = Sums::of(pods);
    let hugetlb: BTreeMap<u64, u64> = node.page_sizes.iter().map(|s| (*s, HUGETLB_UNLIMITED)).collect();
    let tier = |shares| CgroupValues { cpu_shares: shares, hugetlb_bytes: hugetlb.clone(), ..CgroupValues::default() };
    let mut tiers = Tiers {
        kubepods: tier(None),
        burstable: tier(Some(cpu::shares(sums.burstable_milli))),
        best_effort: tier(Some(MIN_SHARES)),
    };
    if let Some(qos) = rules.memory_qos {
        let kept = |bytes: i64| if qos.tiered { bytes } else { 0 };
        // What is kept for those below is kept only as far as it is kept here.
        tiers.kubepods.memory_min_bytes = Some(kept(sums.guaranteed_bytes.saturating_add(sums.burstable_bytes)));
        tiers.burstable.memory_low_bytes = Some(kept(sums.burstable_bytes));
    }
    if let Some(percent) = rules.qos_reserved_memory {
        tiers.reserve(&sums, node.memory_allocatable_bytes, percent);
    }
    tiers
}

/// What the pods request together, by class.
#[derive(Default)]
struct Sums {
    burstable_milli: i64,
    burstable_bytes: i64,
    guaranteed_bytes: i64,
}

impl Sums {
    fn of<'a>(pods: impl Iterator<Item = &'a Pod>) -> Self {
        let mut sums = Self::default();
        for pod in pods {
            let requests = resources::pod_requests(pod);
            let bytes = requests.get(MEMORY).map_or(0, |q| q.value());
            let (milli, sum) = match resources::qos_class(pod) {
                QosClass::BestEffort => continue,
                QosClass::Guaranteed => (0, &mut sums.guaranteed_bytes),
                QosClass::Burstable => (crate::tree::milli(&requests, CPU), &mut sums.burstable_bytes),
            };
            *sum = sum.saturating_add(bytes);
            sums.burstable_milli = sums.burstable_milli.saturating_add(milli);
        }
        sums
    }
}
