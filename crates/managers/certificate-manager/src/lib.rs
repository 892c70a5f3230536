//! CertificateManager: the certificates of this node, by certificate requests or from files (interfaces 3.9, 3.10).
//!
//! **Owns** the client certificate (bootstrap, rotation), the serving certificate (requests, configured files, self-signed),
//! their files in the certificate folder, and the word that the daemon should start anew.
//! **Asks** nobody; talks to the API server. Reads NodeManager's view for the addresses of the serving certificate.
//! **Never** decides who uses a certificate: the API client and the HTTPS server read the view.
//! **Lost on restart** is nothing: pairs and the open request (key and name) are files.
//! **Read next** `actor.rs` (when), `request.rs` (one certificate), `store.rs` (files); rules stand in policy/cert-rotation.

#![forbid(unsafe_code)]

mod actor;
mod config;
mod request;
mod rotated;
mod signing;
mod store;
mod unrotated;

#[cfg(test)]
mod tests;

pub use crate::actor::{CertificateManager, Deps};
pub use crate::config::{ClientSource, Config, PemPair, ServingSource};
