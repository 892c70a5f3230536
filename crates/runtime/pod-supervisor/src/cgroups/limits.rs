//! Limits of version 1, in the order in which the kernel takes them.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use serde::Deserialize;

use super::Groups;
use crate::helper::at;

/// Devices that containers may use whatever their rules are (`runc`'s list): to make any, and to use those in `/dev` and terminals.
const ALWAYS: [(char, Option<i64>, Option<i64>, &str); 11] = [
    ('c', None, None, "m"),
    ('b', None, None, "m"),
    ('c', Some(1), Some(3), "rwm"),
    ('c', Some(1), Some(8), "rwm"),
    ('c', Some(1), Some(7), "rwm"),
    ('c', Some(5), Some(0), "rwm"),
    ('c', Some(1), Some(5), "rwm"),
    ('c', Some(1), Some(9), "rwm"),
    ('c', Some(136), None, "rwm"),
    ('c', Some(5), Some(2), "rwm"),
    ('c', Some(10), Some(200), "rwm"),
];
/// What `devices.list` says where all may be used.
const ALL: &str = "a *:* rwm";

/// `resources` of a spec, as far as they can be set here. A part that is not known is refused: a later server may think that it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Rules for devices.
    #[serde(default)]
    devices: Vec<Rule>,
    #[serde(default)]
    memory: Memory,
    #[serde(default)]
    cpu: Cpu,
}

/// A rule for devices; no type: all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    allow: bool,
    #[serde(rename = "type")]
    kind: Option<char>,
    major: Option<i64>,
    minor: Option<i64>,
    access: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    limit: Option<i64>,
    swap: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cpu {
    shares: Option<u64>,
    quota: Option<i64>,
    period: Option<u64>,
    cpus: Option<String>,
    mems: Option<String>,
}

/// A value for a file of a controller.
type Value = (&'static str, &'static str, String);

impl Groups {
    /// Sets limits; what is not given stays as it is.
    ///
    /// # Errors
    /// A controller is not there, or the kernel refuses a value.
    pub fn limit(&self, limits: &Resources) -> io::Result<()> {
        let memory = &limits.memory;
        // Memory is at most memory and swap together, at each moment.
        let raised = memory.swap.is_some_and(|swap| {
            swap < 0 || self.now("memory", "memory.limit_in_bytes").is_none_or(|now| i128::from(now) < i128::from(swap))
        });
        for (controller, file, value) in memory_values(memory, raised).into_iter().chain(plain_values(&limits.cpu)) {
            self.set(controller, file, &value)?;
        }
        self.limit_cpu(&limits.cpu)
    }

    /// Quota and period: a shorter period is refused where the quota of before would be too much of it.
    fn limit_cpu(&self, cpu: &Cpu) -> io::Result<()> {
        let period = cpu.period.map(|p| p.to_string());
        let first = period.as_deref().map_or(Ok(()), |p| self.set("cpu", "cpu.cfs_period_us", p));
        let again = match first {
            Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) && cpu.quota.is_some() => true,
            other => other.map(|()| false)?,
        };
        if let Some(quota) = cpu.quota {
            self.set("cpu", "cpu.cfs_quota_us", &quota.to_string())?;
        }
        period.filter(|_| again).map_or(Ok(()), |p| self.set("cpu", "cpu.cfs_period_us", &p))
    }

    /// Lets a new group use the devices of the rules, and those that every container may use.
    pub(crate) fn allow(&self, limits: &Resources) -> io::Result<()> {
        let list = self.of_controller("devices").and_then(|f| fs::read_to_string(f.join("devices.list")).ok());
        let writes = device_writes(&limits.devices, list.is_some_and(|l| l.trim() == ALL));
        writes.iter().try_for_each(|(file, line)| self.set("devices", file, line))
    }

    fn now(&self, controller: &str, file: &str) -> Option<u64> {
        fs::read_to_string(self.of_controller(controller)?.join(file)).ok()?.trim().parse().ok()
    }

    fn set(&self, controller: &str, file: &str, value: &str) -> io::Result<()> {
        let missing =
            || io::Error::other(format!("{file} cannot be set to {value}: no cgroup controller {controller}"));
        let path = self.of_controller(controller).ok_or_else(missing)?.join(file);
        fs::write(&path, value).map_err(|e| {
            let code = e.raw_os_error();
            // With its number, by which it is told what to do.
            code.filter(|c| *c == Errno::INVAL.raw_os_error()).map_or_else(
                || io::Error::new(e.kind(), format!("{}: {value}: {e}", path.display())),
                io::Error::from_raw_os_error,
            )
        })
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

/// Files and lines, in their order. The last rule for all devices is what the others are exceptions of.
fn device_writes(rules: &[Rule], is_all: bool) -> Vec<(&'static str, String)> {
    let for_all = |r: &Rule| r.kind.is_none_or(|k| k == 'a');
    let last = rules.iter().rposition(for_all);
    let (mut writes, mut given) = (Vec::new(), true);
    match last.map(|at| rules[at].allow) {
        Some(true) => {
            given = false;
            if !is_all {
                writes.push(("devices.allow", "a".to_owned()));
            }
        }
        Some(false) => writes.push(("devices.deny", "a".to_owned())),
        None => {}
    }
    for rule in &rules[last.map_or(0, |at| at + 1)..] {
        writes.push(line(rule.allow, rule.kind.unwrap_or('a'), rule.major, rule.minor, &rule.access));
    }
    if given {
        writes.extend(ALWAYS.iter().map(|(kind, major, minor, access)| line(true, *kind, *major, *minor, access)));
    }
    writes
}

fn line(allow: bool, kind: char, major: Option<i64>, minor: Option<i64>, access: &str) -> (&'static str, String) {
    let number = |n: Option<i64>| n.filter(|n| *n >= 0).map_or_else(|| "*".to_owned(), |n| n.to_string());
    let file = if allow { "devices.allow" } else { "devices.deny" };
    (file, format!("{kind} {}:{} {access}", number(major), number(minor)))
}

/// A new group of `cpuset` has no processors and no memory until it is given some; those above it may be new, too.
pub(super) fn inherit_cpuset(mount: &Path, folder: &Path) -> io::Result<()> {
    let Some(above) = folder.parent().filter(|_| folder != mount) else { return Ok(()) };
    inherit_cpuset(mount, above)?;
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let path = folder.join(file);
        if fs::read_to_string(&path).map_err(at(&path))?.trim().is_empty() {
            let theirs = fs::read(above.join(file)).map_err(at(&above.join(file)))?;
            fs::write(&path, theirs).map_err(at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(text: &str) -> serde_json::Result<Resources> {
        serde_json::from_str(text)
    }

    fn written(rules: &str, is_all: bool) -> Vec<String> {
        let all = resources(&format!(r#"{{"devices": {rules}}}"#)).expect("rules");
        device_writes(&all.devices, is_all).into_iter().map(|(file, line)| format!("{file} {line}")).collect()
    }

    #[test]
    fn what_is_not_known_is_no_limit_that_could_be_forgotten() {
        assert!(resources("{}").is_ok());
        for more in [
            r#"{"unified": {}}"#,
            r#"{"hugepageLimits": []}"#,
            r#"{"memory": {"kernel": 1}}"#,
            r#"{"cpu": {"idle": 1}}"#,
        ] {
            assert!(resources(more).unwrap_err().to_string().contains("unknown field"), "{more}");
        }
    }

    #[test]
    fn devices_are_denied_first_and_then_given() {
        let one = written(
            r#"[{"allow": false, "access": "rwm"},
            {"allow": true, "type": "c", "major": 10, "minor": 229, "access": "rw"}]"#,
            true,
        );
        assert_eq!(one[..2], ["devices.deny a", "devices.allow c 10:229 rw"]);
        assert_eq!(one.len(), 2 + ALWAYS.len());
        assert!(
            one.contains(&"devices.allow c 136:* rwm".to_owned()) && one.contains(&"devices.allow b *:* m".to_owned())
        );
        let all = r#"[{"allow": false, "access": "rwm"}, {"allow": true, "access": "rwm"}]"#;
        assert!(written(all, true).is_empty());
        assert_eq!(written(all, false), ["devices.allow a"]);
    }

    #[test]
    fn memory_and_swap_are_set_in_the_order_that_fits() {
        let memory = Memory { limit: Some(10), swap: Some(20) };
        let order = |first| memory_values(&memory, first).into_iter().map(|v| v.1).collect::<Vec<_>>();
        assert_eq!(order(true), ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]);
        assert_eq!(order(false), ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]);
        assert_eq!(memory_values(&Memory { limit: Some(1), swap: None }, false).len(), 1);
    }

    #[test]
    fn processors_are_those_of_the_next_group_that_has_some() {
        let dir = tempfile::tempdir().expect("folder");
        let folder = dir.path().join("pods/pod");
        fs::create_dir_all(&folder).expect("folders");
        for (at, cpus) in [(dir.path(), "0-1\n"), (&dir.path().join("pods"), "\n"), (&folder, "")] {
            fs::write(at.join("cpuset.cpus"), cpus).expect("file");
            fs::write(at.join("cpuset.mems"), "0\n").expect("file");
        }
        inherit_cpuset(dir.path(), &folder).expect("inherited");
        assert_eq!(fs::read_to_string(folder.join("cpuset.cpus")).expect("file"), "0-1\n");
    }
}
