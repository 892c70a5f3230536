//! `logging` (interfaces 10.1).

use serde_json::{Map, Value};

use crate::config::{FileVerbosity, LogFormat, NodeConfig};
use crate::error::ConfigError;
use crate::reader::{Reader, set};
use model::go_duration;

pub(super) fn logging(r: &mut Reader<'_>, c: &mut NodeConfig) {
    let Some(fields) = r.object("logging") else { return };
    let mut inner = Reader::new("logging", fields, r.findings);
    if inner.word("format", &["text", "json"]).as_deref() == Some("json") {
        c.logging.format = LogFormat::Json;
    }
    set(&mut c.logging.verbosity, inner.count("verbosity", 0));
    // Lines are written at once, so every period is kept.
    if let Some(period) = inner.raw("flushFrequency") {
        let fits = match &period {
            Value::Number(n) => n.as_i64().is_some_and(|n| n >= 0),
            Value::String(s) => go_duration::parse(s).is_ok(),
            _ => false,
        };
        if !fits {
            let error = ConfigError::new("logging.flushFrequency", "is no period").value(&period);
            inner.findings.error(error.allowed("a duration such as 5s, or a whole number of nanoseconds"));
        }
    }
    if let Some(list) = inner.raw("vmodule") {
        c.logging.vmodule = vmodule(&mut inner, &list);
    }
    if !c.logging.vmodule.is_empty() && c.logging.format == LogFormat::Json {
        inner.findings.error(ConfigError::new("logging.vmodule", "works with the format text only"));
    }
    if let Some(fields) = inner.object("options") {
        options(&mut inner, c, fields);
    }
    inner.finish(&[]);
}

fn vmodule(r: &mut Reader<'_>, value: &Value) -> Vec<FileVerbosity> {
    let mut out = Vec::new();
    for (i, entry) in r.findings.list("logging.vmodule", value).unwrap_or_default().iter().enumerate() {
        let at = format!("logging.vmodule[{i}]");
        let Some(fields) = r.findings.object(&at, entry).cloned() else { continue };
        let mut inner = Reader::new(&at, fields, r.findings);
        let (pattern, verbosity) = (inner.text("filePattern").unwrap_or_default(), inner.count("verbosity", 0));
        if pattern.is_empty() || pattern.contains([',', '=']) {
            let error = ConfigError::new(format!("{at}.filePattern"), "is no pattern of a file name");
            inner
                .findings
                .error(error.value(&Value::from(pattern.as_str())).allowed("a name without ending, * and ? allowed"));
        }
        inner.finish(&[]);
        out.push(FileVerbosity { file_pattern: pattern, verbosity: verbosity.unwrap_or(0) });
    }
    out
}

fn options(r: &mut Reader<'_>, c: &mut NodeConfig, fields: Map<String, Value>) {
    let alpha = c.feature_gates.enabled("LoggingAlphaOptions");
    let mut outer = Reader::new("logging.options", fields, r.findings);
    for (name, format) in [("text", LogFormat::Text), ("json", LogFormat::Json)] {
        let Some(fields) = outer.object(name) else { continue };
        let prefix = format!("logging.options.{name}");
        let mut inner = Reader::new(&prefix, fields, outer.findings);
        let split = inner.bool("splitStream") == Some(true);
        let buffer = inner.quantity("infoBufferSize").is_some_and(|q| !q.is_zero());
        for (set, field) in [(split, "splitStream"), (buffer, "infoBufferSize")] {
            if set && !alpha {
                let reason = "needs the feature gate LoggingAlphaOptions, which is off by default";
                inner.findings.error(ConfigError::new(format!("{prefix}.{field}"), reason));
            }
        }
        if buffer {
            inner.findings.warn(format!("{prefix}.infoBufferSize"), "not implemented: lines are written at once");
        }
        inner.finish(&[]);
        if format == c.logging.format {
            c.logging.split_stream = split;
        }
    }
    outer.finish(&[]);
}
