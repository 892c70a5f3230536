//! Which hosts are asked for the images of a registry: `hosts.toml`, as containerd reads it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::url::Url;
use toml::{Table, Value};

use crate::endpoint::{Endpoint, TlsFiles};

#[cfg(test)]
mod tests;

/// Why a configuration of hosts is of no use.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// A file or folder cannot be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A file says something that cannot be.
    #[error("{path:?}: {why}")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Key and reason.
        why: String,
    },
}

/// The hosts for a registry, in the order of asking; at the end the registry itself, or what stands for it as `server`.
///
/// # Errors
/// A file is there and cannot be used: images of another place than was meant must not come in silently.
pub fn hosts(config: Option<&Path>, registry: &str) -> Result<Vec<Endpoint>, HostsError> {
    for folder in config.into_iter().flat_map(|root| folders(root, registry)) {
        let file = folder.join("hosts.toml");
        match fs::read_to_string(&file) {
            Ok(text) => return parse(&text, &folder, registry).map_err(|why| HostsError::Wrong { path: file, why }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(HostsError::Read { path: file, source }),
        }
        // Certificates alone, as Docker has them.
        match certificates(&folder) {
            Ok(tls) => return Ok(vec![Endpoint { tls, ..own(registry)? }]),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(source) => return Err(HostsError::Read { path: folder, source }),
        }
    }
    Ok(vec![own(registry)?])
}

/// Folders that may be meant for a registry, the first counts.
fn folders(root: &Path, registry: &str) -> Vec<PathBuf> {
    let with_port = registry.rsplit_once(':').filter(|(host, port)| !host.is_empty() && !port.contains(']'));
    let escaped = with_port.map(|(host, port)| root.join(format!("{host}_{port}_")));
    escaped.into_iter().chain([root.join(registry), root.join("_default")]).collect()
}

/// The registry itself, by TLS; without it where it is on this machine, as containerd has it.
fn own(registry: &str) -> Result<Endpoint, HostsError> {
    let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
    let scheme = if is_loopback(host) { "http" } else { "https" };
    let wrong = || HostsError::Wrong { path: PathBuf::from(registry), why: "no name of a registry".to_owned() };
    let root = Url::parse(&format!("{scheme}://{host}/v2")).ok_or_else(wrong)?;
    Ok(Endpoint { root, resolves: true, pulls: true, tls: TlsFiles::default(), headers: Vec::new(), mirror_of: None })
}

fn is_loopback(host: &str) -> bool {
    let Some(url) = Url::parse(&format!("http://{host}/")) else { return false };
    let address = url.host.parse::<std::net::IpAddr>();
    url.port != Some(443) && (url.host == "localhost" || address.is_ok_and(|a| a.is_loopback()))
}

fn certificates(folder: &Path) -> io::Result<TlsFiles> {
    let mut tls = TlsFiles::default();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        match path.extension().and_then(|e| e.to_str()) {
            Some("crt") => tls.ca.push(path),
            Some("cert") if tls.client.is_none() => tls.client = Some((path.clone(), Some(path.with_extension("key")))),
            _ => {}
        }
    }
    Ok(tls)
}

/// Reads a file that lies in `folder`.
fn parse(text: &str, folder: &Path, registry: &str) -> Result<Vec<Endpoint>, String> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim().to_owned())?;
    let mut endpoints = Vec::new();
    match table.get("host") {
        None => {}
        Some(Value::Table(hosts)) => {
            for (url, host) in hosts {
                let host = host.as_table().ok_or_else(|| format!("host.{url:?} is no table"))?;
                let at = |why| format!("host.{url:?}: {why}");
                let mut endpoint = endpoint(url, host, folder).map_err(at)?;
                endpoint.mirror_of = Some(registry.to_owned());
                endpoints.push(endpoint);
            }
        }
        Some(_) => return Err("host is no table".to_owned()),
    }
    let itself = own(registry).map_err(|e| e.to_string())?;
    let server = match text_of(&table, "server")? {
        Some(server) => server,
        None => itself.root.to_string().trim_end_matches("/v2").to_owned(),
    };
    let mut last = endpoint(&server, &table, folder)?;
    last.mirror_of = (!crate::endpoint::same_server(&last.root, &itself.root)).then(|| registry.to_owned());
    endpoints.push(last);
    Ok(endpoints)
}

fn endpoint(url: &str, table: &Table, folder: &Path) -> Result<Endpoint, String> {
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let mut root = Url::parse(&with_scheme).ok_or_else(|| format!("{url:?} is no URL of http or https"))?;
    let path = root.path.trim_end_matches('/');
    root.path = match flag(table, "override_path")? || path.ends_with("/v2") {
        true => path.to_owned(),
        false => format!("{path}/v2"),
    };
    let capabilities = match table.get("capabilities") {
        None => vec!["pull".to_owned(), "resolve".to_owned()],
        Some(list) => texts(list).ok_or("capabilities is no list of texts")?,
    };
    let has = |capability: &str| capabilities.iter().any(|c| c == capability);
    let (resolves, pulls) = (has("resolve"), has("pull"));
    let known = |c: &&String| matches!(c.as_str(), "pull" | "resolve" | "push" | "referrers");
    if let Some(unknown) = capabilities.iter().find(|c| !known(c)) {
        return Err(format!("capabilities: {unknown:?} is none; there are pull, resolve and push"));
    }
    let tls = TlsFiles {
        ca: table.get("ca").map(|ca| files(ca, folder).ok_or("ca is no path")).transpose()?.unwrap_or_default(),
        client: table.get("client").map(|c| client(c, folder)).transpose()?.flatten(),
        skip_verify: flag(table, "skip_verify")?,
    };
    let headers = table.get("header").map(headers).transpose()?.unwrap_or_default();
    Ok(Endpoint { root, resolves, pulls, tls, headers, mirror_of: None })
}

fn text_of(table: &Table, key: &str) -> Result<Option<String>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{key} is no text")),
    }
}

fn flag(table: &Table, key: &str) -> Result<bool, String> {
    let value = table.get(key).map(|v| v.as_bool().ok_or_else(|| format!("{key} is neither true nor false")));
    Ok(value.transpose()?.unwrap_or(false))
}

/// One text or several.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => list.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn files(value: &Value, folder: &Path) -> Option<Vec<PathBuf>> {
    Some(texts(value)?.into_iter().map(|path| folder.join(path)).collect())
}

/// A file with certificate and key, or pairs of both; a registry is shown the first.
fn client(value: &Value, folder: &Path) -> Result<Option<(PathBuf, Option<PathBuf>)>, String> {
    let wrong = "client is neither a path nor a list of paths or pairs of them";
    let first = match value {
        Value::Array(list) => list.first(),
        other => Some(other),
    };
    let Some(first) = first else { return Ok(None) };
    let pair = files(first, folder).ok_or(wrong)?;
    match <[PathBuf; 2]>::try_from(pair.clone()) {
        Ok([certificate, key]) if !key.as_os_str().is_empty() => Ok(Some((certificate, Some(key)))),
        _ => Ok(Some((pair.into_iter().next().ok_or(wrong)?, None))),
    }
}

fn headers(value: &Value) -> Result<Vec<(String, String)>, String> {
    let table = value.as_table().ok_or("header is no table")?;
    let mut headers = Vec::new();
    for (name, values) in table {
        let values = texts(values).ok_or_else(|| format!("header {name} is neither a text nor a list of texts"))?;
        headers.extend(values.into_iter().map(|v| (name.clone(), v)));
    }
    Ok(headers)
}
