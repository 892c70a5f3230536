//! `tracing`: where spans go (`k8s.io/component-base/tracing`, and gRPC's rules of names).

use std::path::PathBuf;

use serde_json::Value;

use crate::config::{NodeConfig, Tracing, TracingEndpoint};
use crate::error::ConfigError;
use crate::reader::{Reader, set};

const ENDPOINT: &str = "tracing.endpoint";
/// The port that gRPC takes when a name has none.
const PORT: u16 = 443;
const FORMS: &str = "host:port, dns:///host:port, unix:///path, unix-abstract:///name";

pub(super) fn tracing(r: &mut Reader<'_>, c: &mut NodeConfig) {
    let Some(fields) = r.object("tracing") else { return };
    let mut inner = Reader::new("tracing", fields, r.findings);
    let mut tracing = Tracing::default();
    let rate = inner.int("samplingRatePerMillion", 0, 1_000_000).and_then(|n| u32::try_from(n).ok());
    set(&mut tracing.sampling_rate_per_million, rate);
    if let Some(text) = inner.some_text("endpoint") {
        match endpoint(&text) {
            Ok((endpoint, ignored)) => {
                tracing.endpoint = endpoint;
                if let Some(server) = ignored {
                    let text = format!("the name is looked up as every other one is, not at {server:?}");
                    inner.findings.warn(ENDPOINT, text);
                }
            }
            Err(reason) => {
                let error = ConfigError::new(ENDPOINT, reason).value(&Value::from(text.as_str()));
                inner.findings.error(error.allowed(FORMS));
            }
        }
    }
    inner.finish(&[]);
    c.tracing = Some(tracing);
}

/// The endpoint, and the DNS server that it names, or why it is none.
fn endpoint(text: &str) -> Result<(TracingEndpoint, Option<&str>), &'static str> {
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme @ ("dns" | "unix" | "unix-abstract"), rest)) => (scheme, rest),
        _ if text.contains("://") => return Err("has a scheme that gRPC does not know"),
        _ => return Ok((place(text)?, None)),
    };
    match (scheme, rest.strip_prefix("//")) {
        ("dns", Some(rest)) => {
            let (server, name) = rest.split_once('/').ok_or("names no host behind dns://SERVER/")?;
            Ok((place(name)?, Some(server).filter(|s| !s.is_empty())))
        }
        // A host may be called so.
        ("dns", None) if rest.parse::<u16>().is_ok() => Ok((place(text)?, None)),
        ("dns", None) => Ok((place(rest)?, None)),
        ("unix", slashes) => {
            let path = slashes.unwrap_or(rest);
            if !path.starts_with('/') {
                return Err("must be an absolute path");
            }
            Ok((TracingEndpoint::Unix(PathBuf::from(path)), None))
        }
        (_, slashes) => {
            let name = slashes.map_or(rest, |s| s.trim_start_matches('/'));
            if name.is_empty() {
                Err("names no socket")
            } else {
                Ok((TracingEndpoint::Abstract(name.to_owned()), None))
            }
        }
    }
}

fn place(text: &str) -> Result<TracingEndpoint, &'static str> {
    let (host, port) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or("has something behind its address")?)),
        None if text.matches(':').count() > 1 => return Err("needs brackets around an IPv6 address"),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(['/', ' ', '@']) {
        return Err("names no host");
    }
    let port = port.map_or(Ok(PORT), |p| p.parse().map_err(|_| "has no number between 0 and 65535 as its port"))?;
    Ok(TracingEndpoint::Tcp(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_grpc_knows_are_endpoints() {
        let tcp = |host: &str, port| TracingEndpoint::Tcp(host.to_owned(), port);
        let table = [
            ("localhost:4317", tcp("localhost", 4317)),
            ("collector.svc", tcp("collector.svc", 443)),
            ("[::1]:4317", tcp("::1", 4317)),
            ("[::1]", tcp("::1", 443)),
            ("dns:collector:4317", tcp("collector", 4317)),
            ("dns:4317", tcp("dns", 4317)),
            ("dns:///collector:4317", tcp("collector", 4317)),
            ("unix:/run/otel.sock", TracingEndpoint::Unix("/run/otel.sock".into())),
            ("unix:///run/otel.sock", TracingEndpoint::Unix("/run/otel.sock".into())),
            ("unix-abstract:otel", TracingEndpoint::Abstract("otel".to_owned())),
            ("unix-abstract:///otel", TracingEndpoint::Abstract("otel".to_owned())),
        ];
        for (text, want) in table {
            assert_eq!(endpoint(text), Ok((want, None)), "{text}");
        }
        let asked_there = endpoint("dns://10.0.0.10/collector:4317");
        assert_eq!(asked_there, Ok((tcp("collector", 4317), Some("10.0.0.10"))));
    }
}
