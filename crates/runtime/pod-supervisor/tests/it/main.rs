//! `bosun-pod` as a process, with containers of a real `runc`. Needs root; `cargo nextest run` leaves `on_runc` out
//! (`.config/nextest.toml`), `cargo test -p pod-supervisor` runs it.

mod bed;
mod on_runc;
