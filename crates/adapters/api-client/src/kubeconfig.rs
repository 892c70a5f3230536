//! Reads a kubeconfig into what a connection needs; all mistakes at once, each with its key (interfaces 9.1).

mod cluster;
mod contents;
mod exec;
mod fields;
mod files;
mod problem;
mod read;
mod user;

pub use contents::{Auth, Kubeconfig, Trust};
pub use exec::{ExecPlugin, ExecVersion};
pub use problem::Problem;
pub use read::{read, read_at};

#[cfg(test)]
mod tests;
