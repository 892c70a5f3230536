//! Counters of threads, actors and mappings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use actor::{ActorInfo, Kernel};

/// One thread of this process.
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) cpu_ns: u64,
}

/// Threads by id. One that ends meanwhile is left out.
pub(super) fn threads() -> Vec<Thread> {
    let mut all: Vec<Thread> = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| thread(&entry.path()))
        .collect();
    all.sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
    all
}

fn thread(dir: &Path) -> Option<Thread> {
    let name = fs::read_to_string(dir.join("comm")).ok()?.trim().to_owned();
    let schedstat = fs::read_to_string(dir.join("schedstat")).ok();
    let exact = schedstat.as_deref().and_then(|s| s.split_whitespace().next()?.parse().ok());
    let cpu_ns = exact.or_else(|| ticks(&fs::read_to_string(dir.join("stat")).ok()?))?;
    Some(Thread { id: dir.file_name()?.to_string_lossy().into_owned(), name, cpu_ns })
}

/// User and system time of a `stat` line; the name in it may hold blanks and parentheses. Ticks are 10 ms on every Linux.
pub(super) fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) * 10_000_000)
}

/// All actors, by name.
pub(super) fn actors(kernel: &Kernel) -> Vec<ActorInfo> {
    let mut all = kernel.directory().actors();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Nanoseconds used, by name.
#[derive(Default)]
pub(super) struct Usage {
    /// By name and id, as names repeat.
    threads: BTreeMap<(String, String), u64>,
    actors: BTreeMap<String, u64>,
}

impl Usage {
    pub(super) fn now(kernel: &Kernel) -> Self {
        Self {
            threads: threads().into_iter().map(|t| ((t.name, t.id), t.cpu_ns)).collect(),
            actors: actors(kernel).into_iter().map(|a| (a.name, a.turn_sum_ns)).collect(),
        }
    }

    /// What came on top of an earlier look; who was not there then, counts whole.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for (key, ns) in &mut self.threads {
            *ns = ns.saturating_sub(before.threads.get(key).copied().unwrap_or(0));
        }
        for (key, ns) in &mut self.actors {
            *ns = ns.saturating_sub(before.actors.get(key).copied().unwrap_or(0));
        }
        self
    }

    /// Busiest first, without the idle.
    pub(super) fn sorted_threads(&self) -> Vec<(&str, u64)> {
        busiest(self.threads.iter().map(|((name, _), ns)| (name.as_str(), *ns)))
    }

    /// Busiest first, without the idle.
    pub(super) fn sorted_actors(&self) -> Vec<(&str, u64)> {
        busiest(self.actors.iter().map(|(name, ns)| (name.as_str(), *ns)))
    }
}

fn busiest<'a>(all: impl Iterator<Item = (&'a str, u64)>) -> Vec<(&'a str, u64)> {
    let mut all: Vec<_> = all.filter(|(_, ns)| *ns > 0).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    all
}

/// Bytes of mappings of one name.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Bytes {
    pub(super) resident: u64,
    pub(super) private_dirty: u64,
}

/// Sums of `smaps` by the mapped file or the kernel's own name.
pub(super) fn mappings(smaps: &str) -> BTreeMap<String, Bytes> {
    let mut all: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut name = "";
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            name = words.nth(4).map_or("anonymous", |word| &line[line.find(word).unwrap_or(0)..]);
            continue;
        }
        let bytes = words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024;
        let entry = match first {
            "Rss:" | "Private_Dirty:" => all.entry(name.to_owned()).or_default(),
            _ => continue,
        };
        match first {
            "Rss:" => entry.resident += bytes,
            _ => entry.private_dirty += bytes,
        }
    }
    all
}
