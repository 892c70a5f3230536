//! What keeps container logs within their limits: LogManager.

use std::sync::Arc;

use contract::LogManager;

use super::Setup;

pub(in crate::node) fn log_manager(setup: &Setup<'_, LogManager>) {
    let config = &setup.settings.config;
    let config = Arc::new(log_manager::Config {
        max_size: config.container_logs.max_size,
        max_files: config.container_logs.max_files,
        max_workers: config.container_logs.max_workers,
        interval: config.container_logs.monitor_interval,
        time_zone: jiff::tz::TimeZone::system(),
    });
    let deps = Arc::new(log_manager::Deps {
        runtime: setup.ports.runtime.clone(),
        fs: setup.ports.fs.clone(),
        compress: setup.ports.compress.clone(),
        serial: setup.kept.logs.clone(),
    });
    setup.spawn(move |crew| log_manager::LogManager::new(&crew, config.clone(), deps.clone()));
}
