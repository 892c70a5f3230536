//! What the routes need.

use std::sync::Arc;
use std::time::Duration;

use contract::lookup::PodLookup;
use ports::runtime::ContainerRuntime;

use crate::streams::Streams;

/// What the routes need.
#[derive(Clone)]
pub struct Deps {
    /// Finds pods.
    pub lookup: PodLookup,
    /// Gives the URL of its streaming server.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// Limits and switches.
    pub settings: Settings,
    /// The streams that are open; close it when the daemon stops.
    pub streams: Streams,
}

/// Limits and switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A stream on which nothing moves for so long is closed: `streamingConnectionIdleTimeout`.
    pub idle_timeout: Duration,
    /// How long the runtime's streaming server may take to accept a connection, and again to answer the upgrade. Ours; a
    /// kubelet has no limit here.
    pub answer_timeout: Duration,
    /// Terminate WebSocket v5 and tunnels here, and relay other WebSockets: gate `ExtendWebSocketsToKubelet`.
    pub websockets: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(4 * 3600), answer_timeout: Duration::from_secs(30), websockets: true }
    }
}
