//! Networks of pods by plugins of the Container Network Interface (CNI 0.3.1 to 1.1.0).
//!
//! Files, environment, results and their cache are libcni's, so that pods outlive a change of the runtime: what another runtime
//! has added can be taken back here, and the other way round. Plugins are programs of others: each call has a time limit, after
//! which the plugin and all that it started are killed, and its output has a bound.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attachment;
mod begun;
mod cache;
mod call;
mod conf;
mod error;
mod network;
mod result;
mod watch;

pub use attachment::Attachment;
pub use conf::{Broken, NetworkList, Plugin, find, load_all};
pub use error::CniError;
pub use network::Cni;
pub use result::{Interface, Ip, NetworkResult};
pub use watch::changes;
