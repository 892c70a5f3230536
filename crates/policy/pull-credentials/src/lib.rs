//! Which credentials a pull is tried with, and whether a pod may use an image that others pulled.
//!
//! Owns the rules of pod-lifecycle 5.3 (keyring), 5.4 (pull records) and interfaces 8.6, 8.7 (credential provider plugins,
//! files of records): parsing, matching, validating, caching decisions. Never reads a file, starts a program or looks at a
//! clock, and never puts a password into a `Debug` text or an error.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod cache;
mod docker_config;
mod duration;
pub mod exchange;
mod keyring;
mod location;
pub mod provider_config;
pub mod records;
mod search;
pub mod verification;

pub use cache::{AccountKey, PluginCache};
pub use docker_config::{Auth, AuthMap, CredentialError, parse_config_json, parse_dockercfg};
pub use keyring::{Credential, Keyring, Source, keyring_of_secrets};
pub use location::{LocationError, check_pattern, matches};
pub use search::{NodeFile, node_files};
