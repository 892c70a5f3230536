//! Whom a critical pod displaces (node-and-resources 5.4).

use model::PodUid;
use model::core::Pod;
use model::pod::{is_critical, uid};
use model::resources::{CPU, MEMORY, QosClass, qos_class};

use crate::fit::{Shortage, request};

/// What must still become free: resource and amount above 0, in the unit of [`Shortage`].
#[derive(Clone, Debug)]
struct Need<'a>(Vec<(&'a str, i64)>);

impl<'a> Need<'a> {
    fn without<'p>(&self, pods: impl Iterator<Item = &'p Pod> + Clone) -> Need<'a> {
        let left = |(name, amount): &(&'a str, i64)| {
            let freed = pods.clone().map(|p| request(p, name)).fold(0_i64, i64::saturating_add);
            (*name, amount.saturating_sub(freed))
        };
        Need(self.0.iter().map(left).filter(|(_, amount)| *amount > 0).collect())
    }

    /// Sum of the squared shares that would still be missing without this pod; 0 when it alone suffices.
    #[allow(clippy::cast_precision_loss, reason = "a distance, as the kubelet computes it")]
    fn distance(&self, pod: &Pod) -> f64 {
        let share = |(name, amount): &(&str, i64)| {
            let missing = amount.saturating_sub(request(pod, name)).max(0);
            (missing as f64 / *amount as f64).powi(2)
        };
        self.0.iter().map(share).sum()
    }

    fn unmet(&self) -> String {
        let items: String = self.0.iter().map(|(name, amount)| format!("(res: {name}, q: {amount}), ")).collect();
        format!("no set of running pods found to reclaim resources: [{items}]")
    }
}

/// The fewest and least important pods whose end makes room: Guaranteed ones only for what all others cannot give,
/// BestEffort ones only for what the chosen others leave open. In the order BestEffort, Burstable, Guaranteed.
pub(crate) fn victims<'a>(
    pod: &Pod,
    active: impl Iterator<Item = &'a Pod>,
    short: &[Shortage],
) -> Result<Vec<PodUid>, String> {
    let need = Need(short.iter().map(|s| (s.name.as_str(), s.lacking())).collect());
    let candidates: Vec<&Pod> = active.filter(|p| may_displace(pod, p)).collect();
    let of = |class: QosClass| -> Vec<&Pod> { candidates.iter().copied().filter(|p| qos_class(p) == class).collect() };
    let (best_effort, burstable, guaranteed) =
        (of(QosClass::BestEffort), of(QosClass::Burstable), of(QosClass::Guaranteed));
    let hopeless = need.without(candidates.iter().copied());
    if !hopeless.0.is_empty() {
        return Err(hopeless.unmet());
    }
    let weaker = best_effort.iter().chain(&burstable).copied();
    let guaranteed = nearest(guaranteed, need.without(weaker))?;
    let burstable = nearest(burstable, need.without(best_effort.iter().chain(&guaranteed).copied()))?;
    let best_effort = nearest(best_effort, need.without(burstable.iter().chain(&guaranteed).copied()))?;
    Ok(best_effort.iter().chain(&burstable).chain(&guaranteed).map(|p| uid(p)).collect())
}

/// A critical pod displaces every other; any pod displaces one of lower priority.
fn may_displace(pod: &Pod, other: &Pod) -> bool {
    let priority = |p: &Pod| p.spec.as_ref().and_then(|s| s.priority);
    (is_critical(pod) && !is_critical(other))
        || matches!((priority(pod), priority(other)), (Some(mine), Some(theirs)) if mine > theirs)
}

/// Takes the pod nearest to the need, again and again until nothing is needed.
fn nearest<'p>(mut pods: Vec<&'p Pod>, mut need: Need<'_>) -> Result<Vec<&'p Pod>, String> {
    let mut chosen = Vec::new();
    while !need.0.is_empty() {
        let Some(best) = nearest_of(&pods, &need) else { return Err(need.unmet()) };
        let pod = pods.swap_remove(best);
        need = need.without(std::iter::once(pod));
        chosen.push(pod);
    }
    Ok(chosen)
}

fn nearest_of(pods: &[&Pod], need: &Need<'_>) -> Option<usize> {
    let size = |i: usize| (request(pods[i], MEMORY), request(pods[i], CPU));
    let mut best: Option<(f64, usize)> = None;
    for (i, pod) in pods.iter().enumerate() {
        let distance = need.distance(pod);
        let nearer = best
            .is_none_or(|(least, at)| distance < least || (distance.total_cmp(&least).is_eq() && size(i) <= size(at)));
        if nearer {
            best = Some((distance, i));
        }
    }
    best.map(|(_, i)| i)
}
