//! bosun on a real containerd, or with its own runtime in it (`TESTBED_RUNTIME=embedded`): black-box tests through manifests, the command line, and the runtime's own view.
//!
//! Needs root and what `cargo xtask setup` installs; run by `cargo xtask e2e`, which builds the daemon. Each test has
//! a bed of its own, and fails with the reason where none can start: a test that skips itself proves nothing.

#![forbid(unsafe_code)]

mod bed;
mod command_line;
mod elsewhere;
mod embedded;
mod exits;
mod full_disk;
mod host;
mod hostile;
mod huge;
mod images;
mod inside;
mod lifecycle;
mod logs;
mod manifests;
mod node;
mod order;
mod python;
mod remote;
mod replaced;
mod stands;
mod streams;
mod survival;
mod tracing;
mod traps;
mod users;
mod volumes;
