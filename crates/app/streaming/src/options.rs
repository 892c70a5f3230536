//! What a request asks for. Pure.

use axum::http::{HeaderMap, header};

/// Streams and command of exec and attach (interfaces 3.7). At least one stream is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
    pub(crate) command: Vec<String>,
}

type Query = [(String, String)];

impl StreamOptions {
    /// Reads the query. With a terminal there is no stderr of its own.
    pub(crate) fn parse(query: &Query) -> Result<Self, String> {
        let is_one = |name: &str| query.iter().find(|(n, _)| n == name).is_some_and(|(_, v)| v == "1");
        let tty = is_one("tty");
        let wanted = Self {
            stdin: is_one("input"),
            stdout: is_one("output"),
            stderr: is_one("error") && !tty,
            tty,
            command: query.iter().filter(|(n, _)| n == "command").map(|(_, v)| v.clone()).collect(),
        };
        if wanted.stdin || wanted.stdout || wanted.stderr {
            Ok(wanted)
        } else {
            Err("you must specify at least 1 of stdin, stdout, stderr".to_owned())
        }
    }
}

/// Ports of a port-forward over channel WebSockets; other requests name them later, per stream.
pub(crate) fn ports(query: &Query) -> Result<Vec<i32>, String> {
    let lists: Vec<&str> = query.iter().filter(|(n, _)| n == "port").map(|(_, v)| v.as_str()).collect();
    if lists.is_empty() {
        return Err("query parameter \"port\" is required".to_owned());
    }
    let mut ports = Vec::new();
    for list in lists {
        if list.is_empty() {
            return Err("query parameter \"port\" cannot be empty".to_owned());
        }
        for text in list.split(',') {
            match go_uint16(text) {
                Ok(0) => return Err(format!("port {list:?} must be > 0")),
                Ok(port) => ports.push(i32::from(port)),
                Err(why) => {
                    return Err(format!(
                        "unable to parse {list:?} as a port: strconv.ParseUint: parsing {text:?}: {why}"
                    ));
                }
            }
        }
    }
    Ok(ports)
}

fn go_uint16(text: &str) -> Result<u16, &'static str> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

/// Whether a request asks to change the protocol.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    let says = |v: &header::HeaderValue| v.to_str().is_ok_and(|v| v.to_ascii_lowercase().contains("upgrade"));
    headers.get_all(header::CONNECTION).iter().any(says)
}

/// Whether that protocol is WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let asked = headers.get(header::UPGRADE).and_then(|v| v.to_str().ok());
    is_upgrade(headers) && asked.is_some_and(|v| v.eq_ignore_ascii_case("websocket"))
}

/// The subprotocols that a WebSocket client offers, in its order.
pub(crate) fn subprotocols(headers: &HeaderMap) -> Vec<&str> {
    let lists = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|v| v.to_str().ok());
    lists.flat_map(|v| v.split(',')).map(str::trim).filter(|v| !v.is_empty()).collect()
}

/// The subprotocol of exec and attach that is terminated here.
pub(crate) const V5: &str = "v5.channel.k8s.io";
/// What a tunnel's subprotocol starts with; the protocol within follows.
pub(crate) const TUNNEL: &str = "SPDY/3.1+";

/// The protocols that a client wants to speak within a tunnel.
pub(crate) fn tunnelled(headers: &HeaderMap) -> Vec<&str> {
    let offered = subprotocols(headers).into_iter().filter_map(|p| p.strip_prefix(TUNNEL));
    offered.filter(|p| p.ends_with(".k8s.io")).collect()
}

#[cfg(test)]
mod tests;
