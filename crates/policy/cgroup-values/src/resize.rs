//! In what order a pod that runs gets other limits (node-and-resources 1.12, KEP-1287).
//!
//! The pod's cgroup grows before its containers and shrinks after them, so that none of them ever has more than the pod.

use model::resources::CgroupValues;

/// One kind of resource; memory goes before CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
}

/// One thing to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Write what is set to the pod's cgroup.
    Pod(CgroupValues),
    /// Tell the runtime of the containers.
    Containers(Kind),
}

/// What to do, in this order, for a pod whose cgroup has the limits `now` and shall have `wanted`. A limit that is not wanted
/// stays as it is: limits cannot be taken away.
#[must_use]
pub fn steps(now: &CgroupValues, wanted: &CgroupValues, memory: bool, cpu: bool) -> Vec<Step> {
    let mut out = Vec::new();
    if memory {
        let limit = wanted.memory_limit_bytes.map(|bytes| (least(now.memory_limit_bytes), bytes));
        let values = CgroupValues { memory_limit_bytes: wanted.memory_limit_bytes, ..CgroupValues::default() };
        around(&mut out, Kind::Memory, &[(limit, values)]);
    }
    if cpu {
        let quota = wanted.cpu_quota_us.map(|us| (least(now.cpu_quota_us), least(Some(us))));
        let limit = CgroupValues {
            cpu_quota_us: wanted.cpu_quota_us,
            cpu_period_us: wanted.cpu_period_us,
            ..CgroupValues::default()
        };
        let amount = |n: Option<u64>| n.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let shares = wanted.cpu_shares.map(|n| (amount(now.cpu_shares), amount(Some(n))));
        let request = CgroupValues { cpu_shares: wanted.cpu_shares, ..CgroupValues::default() };
        around(&mut out, Kind::Cpu, &[(quota, limit), (shares, request)]);
    }
    out
}

/// No limit is the largest one.
fn least(limit: Option<i64>) -> i64 {
    limit.filter(|n| *n >= 0).unwrap_or(i64::MAX)
}

/// Growth in the order of the list, the containers, then what shrinks in the other direction.
fn around(out: &mut Vec<Step>, kind: Kind, writes: &[(Option<(i64, i64)>, CgroupValues)]) {
    let grows = writes.iter().filter(|(change, _)| change.is_some_and(|(from, to)| to > from));
    out.extend(grows.map(|(_, values)| Step::Pod(values.clone())));
    out.push(Step::Containers(kind));
    let shrinks = writes.iter().rev().filter(|(change, _)| change.is_some_and(|(from, to)| to < from));
    out.extend(shrinks.map(|(_, values)| Step::Pod(values.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(shares: u64, quota: i64, memory: i64) -> CgroupValues {
        CgroupValues {
            cpu_shares: Some(shares),
            cpu_quota_us: Some(quota),
            cpu_period_us: Some(100_000),
            memory_limit_bytes: Some(memory),
            ..CgroupValues::default()
        }
    }

    fn told(now: &CgroupValues, wanted: &CgroupValues) -> String {
        let word = |step: &Step| match step {
            Step::Containers(Kind::Memory) => "containers' memory".to_owned(),
            Step::Containers(Kind::Cpu) => "containers' cpu".to_owned(),
            Step::Pod(v) => {
                let one = [
                    v.memory_limit_bytes.map(|n| format!("memory {n}")),
                    v.cpu_quota_us.map(|n| format!("quota {n}/{}", v.cpu_period_us.unwrap())),
                    v.cpu_shares.map(|n| format!("shares {n}")),
                ];
                one.into_iter().flatten().collect::<Vec<_>>().join(" and ")
            }
        };
        steps(now, wanted, true, true).iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_pod_grows_before_its_containers_and_shrinks_after_them() {
        let (small, large) = (values(100, 10_000, 1000), values(200, 20_000, 2000));
        let up = "memory 2000, containers' memory, quota 20000/100000, shares 200, containers' cpu";
        assert_eq!(told(&small, &large), up);
        let down = "containers' memory, memory 1000, containers' cpu, shares 100, quota 10000/100000";
        assert_eq!(told(&large, &small), down);
        assert_eq!(told(&small, &small), "containers' memory, containers' cpu");
        let mixed = values(200, 10_000, 500);
        assert_eq!(told(&small, &mixed), "containers' memory, memory 500, shares 200, containers' cpu");
    }

    #[test]
    fn no_limit_is_the_largest() {
        let (none, some) = (values(100, -1, -1), values(100, 10_000, 1000));
        let set = "containers' memory, memory 1000, containers' cpu, quota 10000/100000";
        assert_eq!(told(&none, &some), set);
        let no_word = CgroupValues { cpu_quota_us: None, memory_limit_bytes: None, ..some.clone() };
        assert_eq!(told(&some, &no_word), "containers' memory, containers' cpu", "a limit cannot be taken away");
        assert_eq!(
            told(&values(100, 10_000, 1000), &values(100, -1, 1000)),
            "containers' memory, quota -1/100000, containers' cpu"
        );
    }

    #[test]
    fn only_what_is_asked_for() {
        let (small, large) = (values(100, 10_000, 1000), values(200, 20_000, 2000));
        assert_eq!(steps(&small, &large, false, false), []);
        assert_eq!(steps(&small, &small, true, false), [Step::Containers(Kind::Memory)]);
    }
}
