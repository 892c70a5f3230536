//! bosun in a machine of its own: what cgroup v2, disks that fail and a power cut show, and nothing else can.
//!
//! Needs root and Debian's user-mode-linux; run by `cargo xtask guest test`, which builds guest and daemon. Each test has a guest of
//! its own, and fails with the reason where none can start.

#![forbid(unsafe_code)]

mod beside;
mod cgroups;
mod claims;
mod disk;
mod flaky;
mod forks;
mod iscsi;
mod memory;
mod nfs;
mod node;
mod pods;
mod power;
mod quota;
mod reserved;
mod resize;
mod served;
mod shutdown;
mod supervisors;
mod swap;
mod systemd;
mod told;
mod troubled;
