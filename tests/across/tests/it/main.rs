//! A manager in a process of its own, over a real socket: what it may do, and what becomes of those who wait when it dies, hangs
//! or lies.

#![allow(clippy::unwrap_used, reason = "tests")]

mod honest;
mod images;
mod liars;
mod places;
mod statuses;
mod strangers;
mod volumes;
mod world;
