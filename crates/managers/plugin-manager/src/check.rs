//! May this CSI driver be registered? With the texts of a kubelet.

use std::path::Path;

use csi_api::registration::PluginInfo;

/// Longest path that fits into a unix socket address, without its closing zero.
const MAX_SOCKET_PATH: usize = 107;
/// Longest name of a driver.
const MAX_NAME: usize = 63;
/// Versions that are looked at.
const MAX_VERSIONS: usize = 64;
/// What a kubelet begins its words about CSI with.
const CSI: &str = "kubernetes.io/csi: ";

/// A version of CSI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(Vec<u64>);

impl Version {
    /// Two numbers or more with dots between them; a leading `v` and what follows the numbers do not count.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let numbers: Option<Vec<u64>> = text.get(..end)?.split('.').map(number).collect();
        numbers.filter(|n| n.len() >= 2).map(Self)
    }

    fn major(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

/// The highest version below 2.
fn highest(versions: &[String]) -> Result<Version, String> {
    let mut why = "<nil>".to_owned();
    let mut highest: Option<Version> = None;
    for text in versions.iter().take(MAX_VERSIONS).rev() {
        match Version::parse(text) {
            None => why = format!("could not parse {text:?} as version"),
            Some(version) if version.major() > 1 => {}
            Some(version) => highest = highest.max(Some(version)),
        }
    }
    let all = versions.join(" ");
    let found = highest.ok_or_else(|| {
        format!("could not find a highest supported version from versions ([{all}]) reported by this driver: {why}")
    })?;
    if found.major() != 1 {
        return Err(format!("highest supported version reported by driver is {found}, must be v1.x"));
    }
    Ok(found)
}

/// Whether a CSI driver may be registered. `beside`: versions of others of its name that are registered already.
///
/// # Errors
/// It may not.
pub fn csi_driver(info: &PluginInfo, beside: &[&[String]]) -> Result<(), String> {
    let invalid =
        |why: String| format!("validation failed for CSI Driver {} at endpoint {}: {why}", info.name, info.endpoint);
    let failed = |why: String| invalid(format!("{CSI}ValidatePlugin for CSI driver {:?} failed. {why}", info.name));
    check_name(&info.name).map_err(invalid)?;
    check_endpoint(Path::new(&info.endpoint)).map_err(invalid)?;
    if info.supported_versions.is_empty() {
        return Err(failed("Plugin returned an empty list for supported versions".to_owned()));
    }
    let version = highest(&info.supported_versions).map_err(|e| {
        let listed: Vec<String> = info.supported_versions.iter().map(|v| format!("{v:?}")).collect();
        failed(format!("None of the versions specified [{}] are supported. err={e}", listed.join(" ")))
    })?;
    let registered = beside.iter().filter_map(|versions| highest(versions).ok()).max();
    if let Some(other) = registered.filter(|other| *other >= version) {
        let other = other.to_string();
        return Err(failed(format!(
            "Another driver with the same name is already registered with a higher supported version: {other:?}"
        )));
    }
    Ok(())
}

/// Its name becomes a folder's, and a key in objects of the API server.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if name.len() > MAX_NAME {
        return Err(format!("the name must be no more than {MAX_NAME} characters"));
    }
    let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let label = |l: &str| l.bytes().all(inside) && edge(l.as_bytes().first()) && edge(l.as_bytes().last());
    if name.split('.').all(label) { Ok(()) } else { Err("the name is no domain name".to_owned()) }
}

fn check_endpoint(endpoint: &Path) -> Result<(), String> {
    if !endpoint.is_absolute() {
        return Err("the endpoint is no absolute path of a unix socket".to_owned());
    }
    if endpoint.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(format!("the endpoint is longer than the {MAX_SOCKET_PATH} bytes that a socket path may have"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
