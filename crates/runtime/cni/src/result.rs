//! What plugins answer.

use serde::Deserialize;
use serde_json::Value;

/// An interface that a plugin made or uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: String,
    /// The network namespace that it is in; empty: the node's.
    pub sandbox: String,
}

/// An address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Ip {
    /// With the length of its network: `10.1.2.3/24`.
    pub address: String,
    /// The way out.
    pub gateway: Option<String>,
    /// Which one of the interfaces has it.
    pub interface: Option<usize>,
}

/// The result of ADD, of CNI 0.3.0 and later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NetworkResult {
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Addresses.
    pub ips: Vec<Ip>,
    /// As the plugin gave it.
    #[serde(skip)]
    pub raw: Value,
}

/// Addresses of one pod.
const MAX_IPS: usize = 64;

impl NetworkResult {
    /// Reads a result.
    ///
    /// # Errors
    /// It is none, or none that could be true.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let raw: Value = serde_json::from_slice(text).map_err(|e| format!("a result that is none: {e}"))?;
        if !raw.is_object() {
            return Err("a result that is none: no object".into());
        }
        let mut result = Self::deserialize(&raw).map_err(|e| format!("a result that is none: {e}"))?;
        if result.ips.len() > MAX_IPS {
            return Err(format!("{} addresses", result.ips.len()));
        }
        if let Some(strange) = result.ips.iter().find(|ip| address(ip).is_none()) {
            return Err(format!("{:?} is no address", strange.address));
        }
        result.raw = raw;
        Ok(result)
    }

    /// Addresses of interface `name` in the pod, without the length of their networks; those of no interface count to it.
    #[must_use]
    pub fn addresses(&self, name: &str) -> Vec<String> {
        let of = |ip: &&Ip| match ip.interface.map(|n| self.interfaces.get(n)) {
            None => true,
            Some(interface) => interface.is_some_and(|i| i.name == name && !i.sandbox.is_empty()),
        };
        self.ips.iter().filter(of).filter_map(|ip| Some(address(ip)?.to_string())).collect()
    }
}

fn address(ip: &Ip) -> Option<std::net::IpAddr> {
    ip.address.split('/').next()?.parse().ok()
}

/// An error as plugins give it (`CNI spec`, "Error").
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PluginError {
    pub(crate) code: u32,
    pub(crate) msg: String,
    pub(crate) details: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_pods_interface() {
        let text = r#"{"cniVersion":"1.0.0",
            "interfaces":[{"name":"br0","mac":"a"},{"name":"veth1"},{"name":"eth0","sandbox":"/ns"},{"name":"eth1","sandbox":"/ns"}],
            "ips":[{"address":"10.1.2.3/24","gateway":"10.1.2.1","interface":2},{"address":"fd00::3/64","interface":2},
                   {"address":"10.9.9.9/24","interface":3},{"address":"10.8.8.8/24","interface":0},{"address":"10.7.7.7/32"}]}"#;
        let result = NetworkResult::parse(text.as_bytes()).expect("a result");
        assert_eq!(result.addresses("eth0"), ["10.1.2.3", "fd00::3", "10.7.7.7"]);
        assert_eq!(result.raw["cniVersion"], "1.0.0");
        // CNI 0.3.1 says the family too.
        let old = br#"{"ips":[{"version":"4","address":"10.0.0.2/16","interface":0}],"interfaces":[{"name":"eth0","sandbox":"x"}]}"#;
        assert_eq!(NetworkResult::parse(old).expect("a result").addresses("eth0"), ["10.0.0.2"]);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"ips":[{"address":"none"}]}"#,
            r#"{"ips":{}}"#,
            r#"{"ips":[{"address":"1.2.3.4","interface":-1}]}"#,
        ] {
            assert!(NetworkResult::parse(text.as_bytes()).is_err(), "{text}");
        }
        let far = br#"{"ips":[{"address":"10.0.0.2/16","interface":7}]}"#;
        assert!(NetworkResult::parse(far).expect("a result").addresses("eth0").is_empty());
    }
}
