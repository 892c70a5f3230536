//! Reader of the host's `resolv.conf`.

/// Most search domains.
pub(super) const MAX_SEARCHES: usize = 32;
/// Longest search domain in bytes; longer ones make some resolvers abort.
pub(super) const MAX_SEARCH_LEN: usize = 253;
/// Longest search line in bytes.
pub(super) const MAX_SEARCH_LINE: usize = 2048;

/// Settings of a resolver file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    /// Every `nameserver`, in order.
    pub nameservers: Vec<String>,
    /// The last `search` line, without trailing dots.
    pub searches: Vec<String>,
    /// All `options`; a later one replaces an earlier of the same name.
    pub options: Vec<String>,
}

/// The file cannot be used; the sandbox is not made and the sync retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolvConfError {
    /// A `nameserver` line without an address.
    #[error("nameserver list is empty in line {line}")]
    NoAddress {
        /// Line, from 1.
        line: usize,
    },
}

impl ResolvConf {
    /// Parses a file. Blank lines, lines that start with `#`, and unknown words are skipped.
    ///
    /// # Errors
    /// A `nameserver` line without an address.
    pub fn parse(text: &str) -> Result<Self, ResolvConfError> {
        let mut out = Self::default();
        for (n, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => match words.next() {
                    Some(address) => out.nameservers.push(address.to_owned()),
                    None => return Err(ResolvConfError::NoAddress { line: n + 1 }),
                },
                Some("search") => {
                    let domains = words.map(|w| w.strip_suffix('.').unwrap_or(w)).filter(|w| !w.is_empty());
                    out.searches = domains.map(str::to_owned).collect();
                }
                Some("options") => words.for_each(|w| set_option(&mut out.options, w.to_owned())),
                _ => {}
            }
        }
        Ok(out)
    }
}

/// What of the host's file would not fit into a pod's settings; text of the node event `CheckLimitsForResolvConf`, told
/// once at the start. A cluster domain takes three of the search domains.
#[must_use]
pub fn limits_problem(path: &str, conf: &ResolvConf, cluster_domain: &str) -> Option<String> {
    let limit = if cluster_domain.is_empty() { MAX_SEARCHES } else { MAX_SEARCHES - 3 };
    if conf.searches.len() > limit {
        return Some(format!(
            "Resolv.conf file '{path}' contains search line consisting of more than {limit} domains!"
        ));
    }
    if conf.searches.iter().any(|s| s.len() > MAX_SEARCH_LEN) {
        return Some(format!(
            "Resolv.conf file '{path}' contains a search path which length is more than allowed {MAX_SEARCH_LEN} chars!"
        ));
    }
    if conf.searches.join(" ").len() > MAX_SEARCH_LINE {
        return Some(format!(
            "Resolv.conf file '{path}' contains search line which length is more than allowed {MAX_SEARCH_LINE} chars!"
        ));
    }
    None
}

fn option_name(option: &str) -> &str {
    option.split_once(':').map_or(option, |(name, _)| name)
}

/// Sets `option` in place of one of the same name, else at the end.
pub(super) fn set_option(options: &mut Vec<String>, option: String) {
    match options.iter_mut().find(|o| option_name(o) == option_name(&option)) {
        Some(old) => *old = option,
        None => options.push(option),
    }
}
