//! `resources` of a spec: what a container may have.

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;

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

/// `resources` of a spec, as far as they can be set here. A part that is not known is refused: a later server may think that it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Rules for devices.
    #[serde(default)]
    pub(super) devices: Vec<Rule>,
    #[serde(default)]
    pub(super) memory: Memory,
    #[serde(default)]
    pub(super) cpu: Cpu,
    #[serde(default, rename = "hugepageLimits")]
    pub(super) pages: Vec<Pages>,
    /// Files of version 2 and what is to be in them.
    #[serde(default)]
    pub(super) unified: BTreeMap<String, String>,
}

/// A limit for pages of one size, in the kernel's words (`2MB`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pages {
    pub(super) page_size: String,
    pub(super) limit: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    pub(super) limit: Option<i64>,
    pub(super) swap: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cpu {
    pub(super) shares: Option<u64>,
    pub(super) quota: Option<i64>,
    pub(super) period: Option<u64>,
    pub(super) cpus: Option<String>,
    pub(super) mems: Option<String>,
}

/// A rule for devices; no type: all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Let through.
    pub allow: bool,
    /// `c` or `b`.
    #[serde(rename = "type")]
    pub kind: Option<char>,
    /// None, or less than 0: all.
    pub major: Option<i64>,
    /// As `major`.
    pub minor: Option<i64>,
    /// Letters of `rwm`.
    pub access: String,
}

impl Resources {
    /// Whether all devices may be used that no rule is about, and the rules, of which a later one counts more.
    #[must_use]
    pub fn rules(&self) -> (bool, Vec<Rule>) {
        let last = self.devices.iter().rposition(|r| r.kind.is_none_or(|k| k == 'a'));
        let all = last.is_some_and(|at| self.devices[at].allow);
        let mut rules = self.devices[last.map_or(0, |at| at + 1)..].to_vec();
        if !all {
            rules.extend(ALWAYS.iter().map(|&(kind, major, minor, access)| Rule {
                allow: true,
                kind: Some(kind),
                major,
                minor,
                access: access.to_owned(),
            }));
        }
        (all, rules)
    }
}

/// A size of pages as files are named by it.
pub(super) fn checked_size(size: &str) -> io::Result<&str> {
    let is_one = size.bytes().all(|b| b.is_ascii_alphanumeric());
    is_one.then_some(size).ok_or_else(|| io::Error::other(format!("{size:?} is no size of pages")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(text: &str) -> serde_json::Result<Resources> {
        serde_json::from_str(text)
    }

    #[test]
    fn what_is_not_known_is_no_limit_that_could_be_forgotten() {
        assert!(resources("{}").is_ok());
        for more in [r#"{"pids": {"limit": 1}}"#, r#"{"memory": {"kernel": 1}}"#, r#"{"cpu": {"idle": 1}}"#] {
            assert!(resources(more).unwrap_err().to_string().contains("unknown field"), "{more}");
        }
    }
}
