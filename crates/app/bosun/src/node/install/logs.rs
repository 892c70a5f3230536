//! What keeps container logs within their limits: LogManager.

use std::sync::Arc;

use contract::LogManager;

use super::Seat;

pub(in crate::node) fn log_manager(seat: &Seat<'_, LogManager>) {
    let config = &seat.settings.config;
    let config = Arc::new(log_manager::Config {
        max_size: config.container_log_max_size,
        max_files: config.container_log_max_files,
        max_workers: config.container_log_max_workers,
        interval: config.container_log_monitor_interval,
        time_zone: jiff::tz::TimeZone::system(),
    });
    let deps = Arc::new(log_manager::Deps {
        runtime: seat.outside.runtime.clone(),
        fs: seat.outside.fs.clone(),
        compress: seat.outside.compress.clone(),
        serial: log_manager::Serial::default(),
    });
    seat.install(move |crew| log_manager::LogManager::new(&crew, config.clone(), deps.clone()));
}
