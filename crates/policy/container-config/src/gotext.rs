//! Text exactly as Go's standard library prints it: it ends up in annotations and files that others parse.

use model::core::{ContainerPort, LifecycleHandler};
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

/// JSON with the characters escaped that Go's encoder escapes beyond the standard (`<`, `>`, `&`, U+2028, U+2029).
/// They can occur inside strings only, so that the replacement is safe on the whole document.
fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

fn to_json<T: Serialize>(value: &T) -> String {
    escape_html(&serde_json::to_string(value).expect("plain structs with string keys always serialize"))
}

fn absent<T: Default + PartialEq>(v: &Option<T>) -> bool {
    v.as_ref().is_none_or(|v| *v == T::default())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Port<'a> {
    #[serde(skip_serializing_if = "absent")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "absent")]
    host_port: Option<i32>,
    container_port: i32,
    #[serde(skip_serializing_if = "absent")]
    protocol: Option<&'a str>,
    #[serde(rename = "hostIP", skip_serializing_if = "absent")]
    host_ip: Option<&'a str>,
}

/// Value of the annotation `io.kubernetes.container.ports`.
#[must_use]
pub fn ports_json(ports: &[ContainerPort]) -> String {
    let ports: Vec<_> = ports
        .iter()
        .map(|p| Port {
            name: p.name.as_deref(),
            host_port: p.host_port,
            container_port: p.container_port,
            protocol: p.protocol.as_deref(),
            host_ip: p.host_ip.as_deref(),
        })
        .collect();
    to_json(&ports)
}

#[derive(Serialize)]
#[serde(untagged)]
enum PortRef<'a> {
    Number(i32),
    Name(&'a str),
}

impl<'a> From<&'a IntOrString> for PortRef<'a> {
    fn from(p: &'a IntOrString) -> Self {
        match p {
            IntOrString::Int(n) => PortRef::Number(*n),
            IntOrString::String(s) => PortRef::Name(s),
        }
    }
}

#[derive(Serialize)]
struct Exec<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    command: &'a [String],
}

#[derive(Serialize)]
struct Header<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HttpGet<'a> {
    #[serde(skip_serializing_if = "absent")]
    path: Option<&'a str>,
    port: PortRef<'a>,
    #[serde(skip_serializing_if = "absent")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "absent")]
    scheme: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    http_headers: Vec<Header<'a>>,
}

#[derive(Serialize)]
struct TcpSocket<'a> {
    port: PortRef<'a>,
    #[serde(skip_serializing_if = "absent")]
    host: Option<&'a str>,
}

#[derive(Serialize)]
struct Sleep {
    seconds: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Handler<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<Exec<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_get: Option<HttpGet<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_socket: Option<TcpSocket<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sleep: Option<Sleep>,
}

/// Value of the annotation `io.kubernetes.container.preStopHandler`: all that is left of the hook for a pod that is gone
/// from every source.
#[must_use]
pub fn handler_json(handler: &LifecycleHandler) -> String {
    to_json(&Handler {
        exec: handler.exec.as_ref().map(|e| Exec { command: e.command.as_deref().unwrap_or_default() }),
        http_get: handler.http_get.as_ref().map(|h| HttpGet {
            path: h.path.as_deref(),
            port: (&h.port).into(),
            host: h.host.as_deref(),
            scheme: h.scheme.as_deref(),
            http_headers: h.http_headers.iter().flatten().map(|h| Header { name: &h.name, value: &h.value }).collect(),
        }),
        tcp_socket: handler.tcp_socket.as_ref().map(|t| TcpSocket { port: (&t.port).into(), host: t.host.as_deref() }),
        sleep: handler.sleep.as_ref().map(|s| Sleep { seconds: s.seconds }),
    })
}

/// A string in double quotes with Go's escapes, as `%q` prints it.
#[must_use]
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            c if c < '\u{80}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_printable(c) => out.push(c),
            c if c <= '\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation and symbols; the standard library's own notion of "needs an escape" is the same
/// set, but it also escapes a leading combining mark, hence the `x` in front.
fn is_printable(c: char) -> bool {
    let mut text = String::from("x");
    text.push(c);
    text.escape_debug().count() == 2
}

#[cfg(test)]
mod tests;
