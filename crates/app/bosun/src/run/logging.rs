//! The daemon's own log, as klog writes it (interfaces 10.1): text for people and node-problem-detector, JSON for collectors.
//!
//! klog counts verbosity, tracing names levels: info is 0, debug 4, trace 6.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use node_config::{LogFormat, Logging};
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

mod fields;
mod klog;
mod lossy;
mod verbosity;

use klog::Klog;
pub(super) use lossy::flush;
use lossy::{Line, Lossy, Stream};
use verbosity::Verbosity;

/// Changes the verbosity of a daemon that runs (`/debug/flags/v`).
pub(super) type SetVerbosity = Arc<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

/// Logs from now on. `filter` (`--log`, `BOSUN_LOG`) wins over the verbosity of the configuration.
pub(super) fn start(filter: Option<&str>, config: &Logging) -> Result<SetVerbosity> {
    let log = Lossy::start(lossy::to_standard).context("the log's thread does not start")?;
    lossy::keep(&log);
    let streams = Streams { split: config.split_stream, log };
    // By the same way: standard error may be what nobody reads.
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let trace = (trace.status() == std::backtrace::BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(backtrace = trace, "{panic}");
    }));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(Klog { json: config.format == LogFormat::Json, pid: std::process::id() })
        .with_writer(streams);
    match filter {
        Some(filter) => {
            let filter = EnvFilter::try_new(filter)
                .with_context(|| format!("--log {filter:?} is no filter (try: info,pod_worker=debug)"))?;
            tracing_subscriber::registry().with(lines.with_filter(filter)).init();
            Ok(Arc::new(|_| Err("--log (or BOSUN_LOG) decides what is logged".to_owned())))
        }
        None => {
            let all = Arc::new(AtomicU32::new(config.verbosity));
            let filter = Verbosity::new(all.clone(), config.vmodule.clone());
            tracing_subscriber::registry().with(lines.with_filter(filter)).init();
            Ok(Arc::new(move |verbosity| {
                all.store(verbosity, Ordering::Relaxed);
                // Callsites remember whether they are wanted.
                tracing::callsite::rebuild_interest_cache();
                Ok(())
            }))
        }
    }
}

/// Standard error; lines that are no errors go to standard output when split.
#[derive(Clone)]
struct Streams {
    split: bool,
    log: Lossy,
}

impl<'w> MakeWriter<'w> for Streams {
    type Writer = Line;

    fn make_writer(&'w self) -> Self::Writer {
        self.log.line(Stream::Err)
    }

    fn make_writer_for(&'w self, meta: &Metadata<'_>) -> Self::Writer {
        let out = self.split && *meta.level() != tracing::Level::ERROR;
        self.log.line(if out { Stream::Out } else { Stream::Err })
    }
}

#[cfg(test)]
mod tests;
