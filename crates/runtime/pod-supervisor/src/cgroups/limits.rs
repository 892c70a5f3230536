//! Limits of version 1, in the order in which the kernel takes them.

use std::io;

use super::groups::Groups;
use super::resources::{Cpu, Memory, Pages, Resources, checked_size};
use super::unified;

/// A value for a file of a controller.
type Value = (&'static str, &'static str, String);

impl Groups {
    /// Sets limits; what is not given stays as it is.
    ///
    /// # Errors
    /// A controller is not there, or the kernel refuses a value.
    pub fn limit(&self, limits: &Resources) -> io::Result<()> {
        if let Some(folder) = self.in_version_2() {
            return unified::limit(folder, limits);
        }
        if !limits.unified.is_empty() {
            return Err(io::Error::other("unified: no files of cgroup version 2 here"));
        }
        let memory = &limits.memory;
        // Memory is at most memory and swap together, at each moment.
        let raised = memory.swap.is_some_and(|swap| {
            swap < 0 || self.now("memory", "memory.limit_in_bytes").is_none_or(|now| i128::from(now) < i128::from(swap))
        });
        for (controller, file, value) in memory_values(memory, raised).into_iter().chain(plain_values(&limits.cpu)) {
            self.set(controller, file, &value)?;
        }
        self.limit_cpu(&limits.cpu)?;
        limits.pages.iter().try_for_each(|pages| self.limit_pages(pages))
    }

    fn limit_pages(&self, Pages { page_size, limit }: &Pages) -> io::Result<()> {
        let page_size = checked_size(page_size)?;
        let file = |kind: &str| format!("hugetlb.{page_size}{kind}.limit_in_bytes");
        self.set("hugetlb", &file(""), &limit.to_string())?;
        // Reserved ones, which kernels before 5.7 do not count by themselves.
        match self.set("hugetlb", &file(".rsvd"), &limit.to_string()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Quota and period: a shorter period is refused where the quota of before would be too much of it.
    fn limit_cpu(&self, cpu: &Cpu) -> io::Result<()> {
        let period = cpu.period.map(|p| p.to_string());
        let first = period.as_deref().map_or(Ok(()), |p| self.set("cpu", "cpu.cfs_period_us", p));
        let again = match first {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput && cpu.quota.is_some() => true,
            other => other.map(|()| false)?,
        };
        if let Some(quota) = cpu.quota {
            self.set("cpu", "cpu.cfs_quota_us", &quota.to_string())?;
        }
        period.filter(|_| again).map_or(Ok(()), |p| self.set("cpu", "cpu.cfs_period_us", &p))
    }
}

fn memory_values(memory: &Memory, swap_first: bool) -> Vec<Value> {
    let value = |file, n: Option<i64>| n.map(|n| ("memory", file, n.to_string()));
    let limit = value("memory.limit_in_bytes", memory.limit);
    let swap = value("memory.memsw.limit_in_bytes", memory.swap);
    let order = if swap_first { [swap, limit] } else { [limit, swap] };
    order.into_iter().flatten().collect()
}

fn plain_values(cpu: &Cpu) -> impl Iterator<Item = Value> {
    let shares = cpu.shares.map(|n| ("cpu", "cpu.shares", n.to_string()));
    let cpus = cpu.cpus.clone().map(|c| ("cpuset", "cpuset.cpus", c));
    let mems = cpu.mems.clone().map(|m| ("cpuset", "cpuset.mems", m));
    [shares, cpus, mems].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_swap_are_set_in_the_order_that_fits() {
        let memory = Memory { limit: Some(10), swap: Some(20) };
        let order = |first| memory_values(&memory, first).into_iter().map(|v| v.1).collect::<Vec<_>>();
        assert_eq!(order(true), ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]);
        assert_eq!(order(false), ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]);
        assert_eq!(memory_values(&Memory { limit: Some(1), swap: None }, false).len(), 1);
    }
}
