//! DNS settings and host aliases.

use std::net::IpAddr;

use model::core::PodSpec;

use super::faults::Faults;
use super::names::Rule;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_DOMAINS: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;

pub(super) fn validate(spec: &PodSpec, faults: &mut Faults) {
    for (i, alias) in spec.host_aliases.iter().flatten().enumerate() {
        ip(&format!("spec.hostAliases[{i}].ip"), &alias.ip, faults);
        for (j, name) in alias.hostnames.iter().flatten().enumerate() {
            faults.name(format!("spec.hostAliases[{i}].hostnames[{j}]"), name, Rule::DnsSubdomain);
        }
    }
    dns(spec, faults);
}

/// An address that must be given.
pub(super) fn ip(path: &str, value: &str, faults: &mut Faults) {
    if value.is_empty() {
        faults.required(path, "");
    } else if value.parse::<IpAddr>().is_err() {
        faults.invalid(path, value, "is not an IPv4 or IPv6 address");
    }
}

fn dns(spec: &PodSpec, faults: &mut Faults) {
    let config = spec.dns_config.as_ref();
    let nameservers = config.and_then(|c| c.nameservers.as_deref()).unwrap_or_default();
    if spec.dns_policy.as_deref() == Some("None") && nameservers.is_empty() {
        faults.required("spec.dnsConfig.nameservers", "dnsPolicy None needs at least one nameserver");
    }
    let Some(config) = config else { return };
    if nameservers.len() > MAX_NAMESERVERS {
        faults.too_long(
            "spec.dnsConfig.nameservers",
            format!("{} entries, more than {MAX_NAMESERVERS}", nameservers.len()),
        );
    }
    for (i, server) in nameservers.iter().enumerate() {
        ip(&format!("spec.dnsConfig.nameservers[{i}]"), server, faults);
    }
    let searches = config.searches.as_deref().unwrap_or_default();
    if searches.len() > MAX_SEARCH_DOMAINS {
        faults
            .too_long("spec.dnsConfig.searches", format!("{} entries, more than {MAX_SEARCH_DOMAINS}", searches.len()));
    }
    let characters = searches.iter().map(String::len).sum::<usize>() + searches.len().saturating_sub(1);
    if characters > MAX_SEARCH_CHARACTERS {
        faults
            .too_long("spec.dnsConfig.searches", format!("{characters} characters, more than {MAX_SEARCH_CHARACTERS}"));
    }
    for (i, search) in searches.iter().enumerate() {
        faults.name(format!("spec.dnsConfig.searches[{i}]"), search, Rule::SearchDomain);
    }
    for (i, option) in config.options.iter().flatten().enumerate() {
        if option.name.as_deref().unwrap_or_default().is_empty() {
            faults.required(format!("spec.dnsConfig.options[{i}].name"), "");
        }
    }
}
