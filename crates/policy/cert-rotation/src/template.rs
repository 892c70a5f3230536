//! What a certificate of this node must say, and what its request is called (interfaces 3.10).

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use model::core::NodeAddress;
use sha2::{Digest, Sha512_256};

use crate::certificate::Facts;

/// Signer of client certificates of nodes.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of serving certificates of nodes.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// The certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// `signerName` of the request.
    pub signer: &'static str,
    /// Common name.
    pub common_name: String,
    /// Organizations.
    pub organizations: BTreeSet<String>,
    /// DNS names, sorted.
    pub dns_names: BTreeSet<String>,
    /// Addresses, sorted.
    pub ip_addresses: BTreeSet<IpAddr>,
    /// Usages as the API spells them. An elliptic key enciphers no other, but approvers and signers before 1.27 take
    /// no request without that usage, and later ones take both.
    pub usages: Vec<String>,
}

fn template(node_name: &str, signer: &'static str, usage: &str) -> Template {
    Template {
        signer,
        common_name: format!("system:node:{node_name}"),
        organizations: BTreeSet::from(["system:nodes".to_owned()]),
        dns_names: BTreeSet::new(),
        ip_addresses: BTreeSet::new(),
        usages: ["key encipherment", "digital signature", usage].map(str::to_owned).to_vec(),
    }
}

/// Of the client certificate.
#[must_use]
pub fn client(node_name: &str) -> Template {
    template(node_name, CLIENT_SIGNER, "client auth")
}

/// Of the serving certificate; none while the node has no address.
#[must_use]
pub fn serving(node_name: &str, addresses: &[NodeAddress]) -> Option<Template> {
    let mut wanted = template(node_name, SERVING_SIGNER, "server auth");
    for address in addresses {
        match (address.type_.as_str(), address.address.parse::<IpAddr>()) {
            ("InternalIP" | "ExternalIP" | "Hostname", Ok(ip)) => {
                wanted.ip_addresses.insert(ip);
            }
            ("Hostname" | "InternalDNS" | "ExternalDNS", _) if !address.address.is_empty() => {
                wanted.dns_names.insert(address.address.clone());
            }
            _ => {}
        }
    }
    (!wanted.ip_addresses.is_empty()).then_some(wanted)
}

impl Template {
    /// What the certificate lacks: empty when it is good enough. More than what is wanted does no harm.
    #[must_use]
    pub fn missing_in(&self, facts: &Facts) -> Option<String> {
        if facts.common_name != self.common_name {
            return Some(format!("common name {:?} instead of {:?}", facts.common_name, self.common_name));
        }
        let organizations = self.organizations.difference(&facts.organizations).map(ToString::to_string);
        let names = self.dns_names.difference(&facts.dns_names).map(ToString::to_string);
        let addresses = self.ip_addresses.difference(&facts.ip_addresses).map(ToString::to_string);
        let missing: Vec<_> = organizations.chain(names).chain(addresses).collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }

    /// One line that is equal for equal templates.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!(
            "{} {} {:?} {:?} {:?}",
            self.signer, self.common_name, self.organizations, self.dns_names, self.ip_addresses
        )
    }
}

/// Name of the request of a one-shot bootstrap: it follows from key and subject, so that a restarted daemon finds its own
/// request again. Each part is hashed as unpadded base64url with a `|` behind it.
#[must_use]
pub fn bootstrap_request_name(public_key: &[u8], template: &Template) -> String {
    let mut hash = Sha512_256::new();
    let mut write = |part: &[u8]| {
        hash.update(BASE64URL.encode(part));
        hash.update("|");
    };
    write(public_key);
    write(template.common_name.as_bytes());
    template.organizations.iter().for_each(|o| write(o.as_bytes()));
    template.usages.iter().for_each(|u| write(u.as_bytes()));
    format!("node-csr-{}", BASE64URL.encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(kind: &str, address: &str) -> NodeAddress {
        NodeAddress { type_: kind.to_owned(), address: address.to_owned() }
    }

    #[test]
    fn a_request_name_follows_from_key_subject_and_usages() {
        let name = bootstrap_request_name(b"key", &client("n1"));
        assert_eq!(name.len(), "node-csr-".len() + 43);
        assert_eq!(name, bootstrap_request_name(b"key", &client("n1")));
        assert_ne!(name, bootstrap_request_name(b"other", &client("n1")));
        assert_ne!(name, bootstrap_request_name(b"key", &client("n2")));
        assert_ne!(name, bootstrap_request_name(b"key", &Template { usages: vec![], ..client("n1") }));
    }

    #[test]
    fn names_and_addresses_come_from_the_node() {
        let all = [
            address("Hostname", "n1"),
            address("Hostname", "10.0.0.9"),
            address("InternalIP", "10.0.0.1"),
            address("ExternalIP", "2001:db8::1"),
            address("InternalIP", "no address"),
            address("InternalDNS", "n1.local"),
            address("ExternalDNS", "n1.example.org"),
            address("InternalDNS", "10.0.0.7"),
            address("Other", "n2"),
            address("Hostname", ""),
        ];
        let template = serving("n1", &all).unwrap();
        let names: Vec<_> = template.dns_names.iter().map(String::as_str).collect();
        assert_eq!(names, ["10.0.0.7", "n1", "n1.example.org", "n1.local"]);
        let addresses: Vec<_> = template.ip_addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.9", "2001:db8::1"]);
        assert_eq!(template.usages, ["key encipherment", "digital signature", "server auth"]);
        assert_eq!(template.signer, "kubernetes.io/kubelet-serving");
    }

    #[test]
    fn a_node_without_address_asks_for_nothing() {
        assert_eq!(serving("n1", &[address("Hostname", "n1"), address("InternalDNS", "n1.local")]), None);
        assert_eq!(serving("n1", &[]), None);
    }

    #[test]
    fn the_client_is_the_node() {
        let template = client("n1");
        assert_eq!(template.common_name, "system:node:n1");
        assert_eq!(template.organizations, BTreeSet::from(["system:nodes".to_owned()]));
        assert_eq!(template.usages, ["key encipherment", "digital signature", "client auth"]);
        assert_eq!(template.signer, "kubernetes.io/kube-apiserver-client-kubelet");
    }

    #[test]
    fn a_certificate_may_say_more_than_wanted_but_not_less() {
        let wanted = serving("n1", &[address("Hostname", "n1"), address("InternalIP", "10.0.0.1")]).unwrap();
        let good = Facts {
            not_before_s: 0,
            not_after_s: 1,
            common_name: "system:node:n1".to_owned(),
            organizations: ["system:nodes".to_owned(), "more".to_owned()].into(),
            dns_names: ["n1".to_owned(), "more".to_owned()].into(),
            ip_addresses: ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()].into(),
            public_key: vec![],
        };
        let rows: [(&str, Facts, Option<&str>); 5] = [
            ("as wanted and more", good.clone(), None),
            (
                "another node",
                Facts { common_name: "system:node:n2".to_owned(), ..good.clone() },
                Some("common name \"system:node:n2\" instead of \"system:node:n1\""),
            ),
            ("no group", Facts { organizations: BTreeSet::new(), ..good.clone() }, Some("system:nodes")),
            ("no name", Facts { dns_names: BTreeSet::new(), ..good.clone() }, Some("n1")),
            ("no address", Facts { ip_addresses: BTreeSet::new(), ..good }, Some("10.0.0.1")),
        ];
        for (what, facts, missing) in rows {
            assert_eq!(wanted.missing_in(&facts).as_deref(), missing, "{what}");
        }
    }
}
