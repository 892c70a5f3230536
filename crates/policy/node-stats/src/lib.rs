//! From counters to statistics: `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor` (interfaces 5.3, 5.4, 6;
//! node-and-resources 9).
//!
//! Owns which sandbox and containers of a pod count, what each number is made of, rates from two samples, sums, and the
//! text of the metrics. Never reads a file or a clock: readings, the runtime's statistics and times come in as arguments.
//! Nothing here can fail: what is not known is left out.

#![forbid(unsafe_code)]

pub mod cadvisor;
mod choose;
mod convert;
mod input;
pub mod resource;
mod samples;
mod summary;
pub mod text;

#[cfg(test)]
mod tests;

pub use choose::{Chosen, choose};
pub use input::{ContainerReadings, MeasuredVolume, NodeDisks, NodeReadings, PodReadings, RuntimeFs, SystemReading};
pub use samples::Samples;
pub use summary::{FromRuntime, measured, summary};
