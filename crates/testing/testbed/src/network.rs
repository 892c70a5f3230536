//! The bed's own bridge and subnet: pods live in it, and the test node's address is its gateway.

use crate::{BedError, command};

/// Names and addresses of one bed's network.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    /// CNI network name; also what marks our iptables rules.
    pub(crate) name: String,
    /// Link name, at most 15 bytes.
    pub(crate) bridge: String,
    octets: (u8, u8),
}

impl Network {
    /// Picks a /24 of 10/8 that no route of the machine covers.
    pub(crate) fn choose(id: &str, rng: &mut fastrand::Rng) -> Result<Self, BedError> {
        let routes = command::run("ip", ["-4", "route"])?;
        loop {
            let octets = (rng.u8(64..250), rng.u8(1..250));
            let ours = format!("10.{}.", octets.0);
            if !routes.contains(&ours) {
                return Ok(Network { name: format!("bosun-{id}"), bridge: format!("bsn-{id}"), octets });
            }
        }
    }

    pub(crate) fn subnet(&self) -> String {
        format!("10.{}.{}.0/24", self.octets.0, self.octets.1)
    }

    pub(crate) fn gateway(&self) -> String {
        format!("10.{}.{}.1", self.octets.0, self.octets.1)
    }

    /// Where a control plane in the bed listens; with the fifteen addresses around it, services get theirs.
    pub(crate) fn service_address(&self) -> String {
        format!("10.{}.{}.241", self.octets.0, self.octets.1)
    }

    /// The last address before those of services.
    pub(crate) fn last_pod_address(&self) -> String {
        format!("10.{}.{}.239", self.octets.0, self.octets.1)
    }

    /// Gives the bridge the address of the control plane, too.
    pub(crate) fn claim_service_address(&self) -> Result<String, BedError> {
        let address = self.service_address();
        command::run("ip", ["address", "add", &format!("{address}/32"), "dev", &self.bridge])?;
        Ok(address)
    }

    /// Creates the bridge before the first pod, so that the node has its address from the start.
    pub(crate) fn up(&self) -> Result<(), BedError> {
        command::run("ip", ["link", "add", &self.bridge, "type", "bridge"])?;
        command::run("ip", ["address", "add", &format!("{}/24", self.gateway()), "dev", &self.bridge])?;
        command::run("ip", ["link", "set", &self.bridge, "up"])?;
        Ok(())
    }
}

/// Removes the bridge, the host-port rules and the cached results of the network `name`.
pub(crate) fn remove(name: &str, bridge: &str) {
    let _ = command::run("ip", ["link", "delete", bridge]);
    remove_rules(name);
    let prefix = format!("{name}-");
    for entry in std::fs::read_dir("/var/lib/cni/results").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The portmap plugin marks the jump into each pod's chain with the network's name; the rest hangs on the chain.
fn remove_rules(name: &str) {
    let Ok(rules) = command::run("iptables", ["-w", "-t", "nat", "-S"]) else { return };
    let mark = format!("name: \\\"{name}\\\"");
    for rule in rules.lines().filter(|r| r.contains(&mark)) {
        let words = split_quoted(rule);
        let delete = words.iter().enumerate().map(|(n, w)| if n == 0 { "-D" } else { w.as_str() });
        let _ = command::run("iptables", ["-w", "-t", "nat"].into_iter().chain(delete));
        if let Some(chain) = words.iter().position(|w| w == "-j").and_then(|n| words.get(n + 1)) {
            let _ = command::run("iptables", ["-w", "-t", "nat", "-F", chain]);
            let _ = command::run("iptables", ["-w", "-t", "nat", "-X", chain]);
        }
    }
}

/// Splits a line of `iptables -S`, where an argument with blanks is quoted and inner quotes are escaped.
fn split_quoted(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::split_quoted;

    #[test]
    fn a_quoted_comment_stays_one_word() {
        let line =
            r#"-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"bosun-1\" id: \"ab\"" -j CNI-DN-1"#;
        let words = split_quoted(line);
        assert_eq!(words[7], r#"dnat name: "bosun-1" id: "ab""#);
        assert_eq!(words.last().map(String::as_str), Some("CNI-DN-1"));
    }
}
