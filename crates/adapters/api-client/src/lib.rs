//! The API server over HTTP: kubeconfig, TLS, credentials, limits, retries, and the list-and-watch engine.
//!
//! It implements [`ports::api::ApiServer`] and knows nothing of pods beyond decoding them. It never asks for certificates:
//! whoever has a new one hands it in with [`ApiClient::set_identity`].

#![forbid(unsafe_code)]

mod client;
mod connect;
mod credentials;
mod error;
mod follow;
mod late;
mod measure;
mod pem;
mod pools;
mod settings;
mod throttle;
mod tls;
mod traced;
mod transport;
mod url;

pub mod bootstrap;
pub mod kubeconfig;

pub use client::ApiClient;
pub use error::BuildError;
pub use kubeconfig::Kubeconfig;
pub use late::LateApi;
pub use pem::{Identity, PemError};
pub use settings::{Settings, WatchTimes, user_agent};
pub use throttle::Rate;

#[cfg(test)]
mod tests;
