//! What the files of `/etc` say about names: `resolv.conf`, `hosts`, `nsswitch.conf`. Text in, data out.
//!
//! The rules are those of Go's own resolver, which a kubelet uses: defaults, limits, and what is passed over in silence.

use std::net::IpAddr;
use std::time::Duration;

/// Where names are looked for, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    FilesDns,
    DnsFiles,
    Files,
    Dns,
}

impl Order {
    /// From `nsswitch.conf`. A source that is not known stands for DNS when DNS itself is not named.
    pub(crate) fn read(text: &str) -> Self {
        let line = text.lines().filter_map(|l| without_comment(l).trim().strip_prefix("hosts:")).next();
        let sources =
            || line.unwrap_or_default().split_whitespace().filter(|w| !w.starts_with('[') && !w.ends_with(']'));
        let has_dns = sources().any(|s| s == "dns");
        let mut order = sources().filter_map(|s| match s {
            "files" => Some(true),
            "dns" => Some(false),
            _ => (!has_dns).then_some(false),
        });
        match order.next() {
            None => Order::FilesDns,
            Some(true) => {
                if order.any(|is_files| !is_files) {
                    Order::FilesDns
                } else {
                    Order::Files
                }
            }
            Some(false) => {
                if order.any(|is_files| is_files) {
                    Order::DnsFiles
                } else {
                    Order::Dns
                }
            }
        }
    }
}

/// `resolv.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// At most three.
    pub(crate) servers: Vec<IpAddr>,
    /// Suffixes for short names, each with a dot at its end.
    pub(crate) search: Vec<String>,
    /// Dots from which on a name is tried as it is before the suffixes.
    pub(crate) ndots: usize,
    /// For one question to one server.
    pub(crate) timeout: Duration,
    /// Rounds over all servers.
    pub(crate) attempts: u32,
    /// Begins with another server each time.
    pub(crate) rotate: bool,
    /// One question at a time.
    pub(crate) single_request: bool,
    /// TCP at once.
    pub(crate) tcp: bool,
}

/// Servers that are asked at most.
const MAX_SERVERS: usize = 3;
/// The longest name with a dot at its end, in bytes.
const MAX_NAME: usize = 254;

impl Config {
    /// `hostname`: its domain is searched where the file names no other.
    pub(crate) fn read(text: &str, hostname: &str) -> Self {
        let mut config = Config {
            servers: Vec::new(),
            search: Vec::new(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
            single_request: false,
            tcp: false,
        };
        for line in text.lines().filter(|l| !l.starts_with([';', '#'])) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") if config.servers.len() < MAX_SERVERS => {
                    config.servers.extend(words.next().and_then(|w| w.parse::<IpAddr>().ok()));
                }
                Some("domain") => config.search = words.next().map(rooted).into_iter().collect(),
                Some("search") => config.search = words.map(rooted).filter(|s| s != ".").collect(),
                Some("options") => words.for_each(|w| config.option(w)),
                _ => {}
            }
        }
        if config.servers.is_empty() {
            config.servers = vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
        }
        if config.search.is_empty() {
            config.search =
                hostname.split_once('.').filter(|(_, d)| !d.is_empty()).map(|(_, d)| rooted(d)).into_iter().collect();
        }
        config
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let number = || value.parse::<u32>().ok();
        match name {
            "ndots" => self.ndots = number().map_or(self.ndots, |n| n.min(15) as usize),
            "timeout" => self.timeout = number().map_or(self.timeout, |n| Duration::from_secs(n.max(1).into())),
            "attempts" => self.attempts = number().map_or(self.attempts, |n| n.max(1)),
            "rotate" => self.rotate = true,
            "single-request" | "single-request-reopen" => self.single_request = true,
            "use-vc" | "usevc" | "tcp" => self.tcp = true,
            _ => {}
        }
    }

    /// The full names to ask for, one after the other.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return [name.to_owned()].into_iter().filter(|n| may_be_asked(n)).collect();
        }
        let itself = format!("{name}.");
        let suffixed = self.search.iter().map(|suffix| format!("{itself}{suffix}"));
        let names: Vec<String> = if name.matches('.').count() >= self.ndots {
            [itself.clone()].into_iter().chain(suffixed).collect()
        } else {
            suffixed.chain([itself.clone()]).collect()
        };
        names.into_iter().filter(|n| may_be_asked(n)).collect()
    }
}

/// Addresses under `.onion` are nobody's business but Tor's (RFC 7686).
fn may_be_asked(name: &str) -> bool {
    name.len() <= MAX_NAME && !name.to_ascii_lowercase().ends_with(".onion.")
}

fn rooted(domain: &str) -> String {
    if domain.ends_with('.') { domain.to_owned() } else { format!("{domain}.") }
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

/// What `hosts` has for a name; letters' case and a dot at the end do not count.
pub(crate) fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let name = name.trim_end_matches('.');
    let of_line = |line: &str| {
        let mut words = without_comment(line).split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|w| w.trim_end_matches('.').eq_ignore_ascii_case(name)).then_some(address)
    };
    text.lines().filter_map(of_line).collect()
}

/// Whether a question can be made of it. A name of digits only is a broken address.
pub(crate) fn is_domain_name(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name);
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    labels.len() < MAX_NAME && labels.split('.').all(label) && labels.bytes().any(|b| !b.is_ascii_digit() && b != b'.')
}
