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
