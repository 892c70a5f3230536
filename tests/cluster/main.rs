//! bosun as the node of a real control plane. Run by `cargo xtask e2e cluster`.

mod bed;
