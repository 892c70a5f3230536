//! The server over its socket, with `bosun-pod`s and a real `runc`. Needs root, `runc`, `busybox-static`, and `bosun-pod` built
//! into the same folder; `cargo nextest run` leaves `on_runc` out (`.config/nextest.toml`).

mod asked;
mod bed;
mod confined;
mod faults;
mod on_runc;
mod started;
mod streams;
