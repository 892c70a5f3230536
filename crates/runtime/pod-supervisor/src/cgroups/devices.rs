//! Devices that a container may use: lines for files of version 1, and rules for who makes a program of them for version 2.

use std::fs;
use std::io;

use super::groups::Groups;
use super::resources::{Resources, Rule};

/// What `devices.list` says where all may be used.
const ALL: &str = "a *:* rwm";

impl Groups {
    /// Lets a new group of version 1 use the devices of the rules, and those that every container may use.
    pub(crate) fn allow(&self, limits: &Resources) -> io::Result<()> {
        if self.in_version_2().is_some() {
            return Ok(());
        }
        let list = self.of_controller("devices").and_then(|f| fs::read_to_string(f.join("devices.list")).ok());
        let writes = writes(limits, list.is_some_and(|l| l.trim() == ALL));
        writes.iter().try_for_each(|(file, line)| self.set("devices", file, line))
    }
}

/// Files and lines, in their order. The last rule for all devices is what the others are exceptions of; without one nothing changes.
fn writes(limits: &Resources, is_all: bool) -> Vec<(&'static str, String)> {
    if limits.devices.is_empty() {
        return Vec::new();
    }
    let (all, rules) = limits.rules();
    let first = match all {
        true => (!is_all).then(|| ("devices.allow", "a".to_owned())),
        false => Some(("devices.deny", "a".to_owned())),
    };
    first.into_iter().chain(rules.iter().map(line)).collect()
}

fn line(rule: &Rule) -> (&'static str, String) {
    let number = |n: Option<i64>| n.filter(|n| *n >= 0).map_or_else(|| "*".to_owned(), |n| n.to_string());
    let file = if rule.allow { "devices.allow" } else { "devices.deny" };
    let kind = rule.kind.unwrap_or('a');
    (file, format!("{kind} {}:{} {}", number(rule.major), number(rule.minor), rule.access))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rules: &str, is_all: bool) -> Vec<String> {
        let all: Resources = serde_json::from_str(&format!(r#"{{"devices": {rules}}}"#)).expect("rules");
        writes(&all, is_all).into_iter().map(|(file, line)| format!("{file} {line}")).collect()
    }

    #[test]
    fn devices_are_denied_first_and_then_given() {
        let one = written(
            r#"[{"allow": false, "access": "rwm"},
            {"allow": true, "type": "c", "major": 10, "minor": 229, "access": "rw"}]"#,
            true,
        );
        assert_eq!(one[..2], ["devices.deny a", "devices.allow c 10:229 rw"]);
        assert_eq!(one.len(), 2 + 11);
        assert!(
            one.contains(&"devices.allow c 136:* rwm".to_owned()) && one.contains(&"devices.allow b *:* m".to_owned())
        );
        let all = r#"[{"allow": false, "access": "rwm"}, {"allow": true, "access": "rwm"}]"#;
        assert!(written(all, true).is_empty());
        assert_eq!(written(all, false), ["devices.allow a"]);
        assert!(written("[]", true).is_empty());
    }
}
