//! What a client is told besides its kubeconfig.

use std::time::Duration;

use crate::throttle::Rate;

/// What is not in the kubeconfig.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `kubeAPIQPS`, `kubeAPIBurst`.
    pub main: Rate,
    /// `eventRecordQPS`, `eventBurst`.
    pub events: Rate,
    /// `User-Agent`.
    pub user_agent: String,
    /// Offer HTTP/2 (off: `DISABLE_HTTP2`).
    pub http2: bool,
    /// Times of the list-and-watch engine.
    pub watch: WatchTimes,
}

/// Times of the list-and-watch engine (interfaces 9.2).
#[derive(Clone, Debug)]
pub struct WatchTimes {
    /// A watch is asked for a random time between these, in seconds.
    pub life_s: (u64, u64),
    /// A watch that is silent for so long is taken up anew; servers send a bookmark each minute.
    pub idle: Duration,
    /// First pause after a failure; doubles each time, with jitter of up to the same again.
    pub pause_first: Duration,
    /// Longest pause without its jitter.
    pub pause_most: Duration,
    /// Without a failure for so long, pauses begin with the first again.
    pub calm_after: Duration,
}

impl Default for WatchTimes {
    fn default() -> Self {
        Self {
            life_s: (300, 600),
            idle: Duration::from_secs(150),
            pause_first: Duration::from_millis(800),
            pause_most: Duration::from_secs(30),
            calm_after: Duration::from_secs(120),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            main: Rate { per_second: 50.0, burst: 100 },
            events: Rate { per_second: 50.0, burst: 100 },
            user_agent: user_agent("v1.36.2", env!("CARGO_PKG_VERSION")),
            http2: true,
            watch: WatchTimes::default(),
        }
    }
}

/// `kubelet/v1.36.2 (linux/amd64) bosun/0.1.0`: what the node says it is, and what it really is.
#[must_use]
pub fn user_agent(kubernetes: &str, bosun: &str) -> String {
    let arch = model::node::go_architecture(std::env::consts::ARCH);
    format!("kubelet/{kubernetes} ({}/{arch}) bosun/{bosun}", std::env::consts::OS)
}
