//! One line per event, in the forms of klog.

use std::fmt;
use std::fmt::Write;
use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{Fields, quote};

/// Verbosity of a level, as klog counts.
pub(super) fn klog_verbosity(level: Level) -> u32 {
    match level {
        Level::DEBUG => 4,
        Level::TRACE => 6,
        _ => 0,
    }
}

/// Name of a source file without folder and ending.
pub(super) fn stem(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|s| s.to_str()).unwrap_or(file)
}

/// Writes lines.
pub(super) struct Klog {
    pub(super) json: bool,
    pub(super) pid: u32,
}

/// What a line is made of, besides its fields.
pub(super) struct Head<'a> {
    pub(super) at: Timestamp,
    pub(super) level: Level,
    /// Source file and line.
    pub(super) file: &'a str,
    pub(super) line: u32,
    /// The actor that speaks.
    pub(super) logger: Option<&'a str>,
}

impl Klog {
    /// `I0102 15:04:05.123456    1234 file.rs:123] "Message" key="value"`
    pub(super) fn text(&self, head: &Head<'_>, fields: &Fields) -> String {
        let letter = match head.level {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            _ => 'I',
        };
        let at = head.at.to_zoned(TimeZone::system());
        let mut out = String::with_capacity(160);
        let _ = write!(
            out,
            "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {}.rs:{}] ",
            at.month(),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.subsec_nanosecond() / 1000,
            self.pid,
            stem(head.file),
            head.line
        );
        quote(&mut out, &fields.message);
        if let Some(logger) = head.logger {
            out.push_str(" logger=");
            quote(&mut out, logger);
        }
        for (name, value) in &fields.pairs {
            let _ = write!(out, " {name}=");
            value.write(&mut out);
        }
        out
    }

    /// `{"ts":1700000000123.456,"caller":"dir/file.rs:123","msg":"Message","v":0,"key":"value"}`
    pub(super) fn json(head: &Head<'_>, fields: &Fields) -> String {
        let micros = head.at.as_microsecond();
        let mut out = String::with_capacity(200);
        let _ = write!(out, "{{\"ts\":{}.{:03},\"caller\":", micros / 1000, micros % 1000);
        quote(&mut out, &format!("{}:{}", short(head.file), head.line));
        if let Some(logger) = head.logger {
            out.push_str(",\"logger\":");
            quote(&mut out, logger);
        }
        out.push_str(",\"msg\":");
        quote(&mut out, &fields.message);
        if head.level != Level::ERROR {
            let _ = write!(out, ",\"v\":{}", klog_verbosity(head.level));
        }
        // Names of the line itself are not given away.
        let taken = |name: &str| ["ts", "caller", "logger", "msg", "v"].contains(&name);
        for (name, value) in &fields.pairs {
            let _ = write!(out, ",\"{name}{}\":", if taken(name) { "_" } else { "" });
            value.write(&mut out);
        }
        out.push('}');
        out
    }
}

/// Crate and file: `pod-worker/sync.rs`.
fn short(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').filter(|p| *p != "src").collect();
    parts.get(parts.len().saturating_sub(2)..).unwrap_or_default().join("/")
}

impl<S, N> FormatEvent<S, N> for Klog
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let meta = event.metadata();
        // The kernel gives each actor a span with its name.
        let logger = ctx.lookup_current().filter(|s| s.name() == "actor").and_then(|s| {
            let extensions = s.extensions();
            let all = extensions.get::<FormattedFields<N>>()?;
            all.fields.split(' ').find_map(|f| f.strip_prefix("name=")).map(str::to_owned)
        });
        let head = Head {
            at: Timestamp::now(),
            level: *meta.level(),
            file: meta.file().unwrap_or(meta.target()),
            line: meta.line().unwrap_or(0),
            logger: logger.as_deref(),
        };
        let line = if self.json { Self::json(&head, &fields) } else { self.text(&head, &fields) };
        writeln!(out, "{line}")
    }
}
