//! The daemon's own log.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use node_config::LogFormat;
use tracing_subscriber::EnvFilter;

/// Logs to standard error from now on.
pub(super) fn start(filter: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("--log {filter:?} is no filter (try: info,pod_worker=debug)"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    Ok(())
}
