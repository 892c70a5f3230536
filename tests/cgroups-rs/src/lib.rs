//! What cgroups-rs 0.5.1 can do of what the node needs, and what it cannot: each test states one answer, and fails when a new
//! version answers otherwise. `docs/decisions/0018-host-libraries.md` draws the conclusion.
//!
//! Version 1 is the real one of the machine, below a directory of our own; version 2 is a tree of plain files, in which what was
//! written can be read back. systemd is never run.

#![forbid(unsafe_code)]
#![cfg(test)]

mod systemd;
mod v1;
mod v2;
