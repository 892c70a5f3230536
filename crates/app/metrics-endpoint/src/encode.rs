//! Forms in which families leave the node, and which one a client gets.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use metrics::prometheus::proto::MetricFamily;

pub(crate) mod protobuf;
mod text;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// `io.prometheus.client.MetricFamily`, each behind its length.
    Protobuf,
}

impl Form {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    pub(crate) fn encode(self, families: &[MetricFamily]) -> Vec<u8> {
        match self {
            Self::Text => text::encode(families, false).into_bytes(),
            Self::OpenMetrics => text::encode(families, true).into_bytes(),
            Self::Protobuf => protobuf::encode(families),
        }
    }

    /// The form that the client likes best of those that we have; text for everybody else, as clients expect who ask for
    /// nothing or for what nobody has.
    pub(crate) fn negotiate(headers: &HeaderMap) -> Self {
        let mut offers: Vec<(f32, Self)> = Vec::new();
        for clause in clauses(headers, ACCEPT) {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let params: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
            let param = |name: &str| {
                params.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim_matches('"'))
            };
            let form = match kind.as_str() {
                "application/vnd.google.protobuf"
                    if param("proto") == Some("io.prometheus.client.MetricFamily")
                        && param("encoding") == Some("delimited") =>
                {
                    Self::Protobuf
                }
                "application/openmetrics-text" if matches!(param("version"), None | Some("1.0.0" | "0.0.1")) => {
                    Self::OpenMetrics
                }
                "text/plain" if matches!(param("version"), None | Some("0.0.4")) => Self::Text,
                "text/*" | "*/*" => Self::Text,
                _ => continue,
            };
            offers.push((quality(param("q")), form));
        }
        // Of equals the first counts.
        let best = offers.into_iter().filter(|(q, _)| *q > 0.0).reduce(|a, b| if b.0 > a.0 { b } else { a });
        best.map_or(Self::Text, |(_, form)| form)
    }
}

/// Whether the client takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    clauses(headers, ACCEPT_ENCODING).any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let named = parts.next().is_some_and(|coding| coding.eq_ignore_ascii_case("gzip"));
        named && parts.find_map(|p| p.strip_prefix("q=")).is_none_or(|q| quality(Some(q)) > 0.0)
    })
}

fn clauses(headers: &HeaderMap, name: axum::http::HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).map(str::trim)
}

/// An absent weight is 1, an unreadable one counts as not wanted.
fn quality(q: Option<&str>) -> f32 {
    q.map_or(1.0, |q| q.parse().unwrap_or(0.0))
}
