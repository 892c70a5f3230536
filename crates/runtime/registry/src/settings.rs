//! What pulling may take.

use std::path::PathBuf;
use std::time::Duration;

use image_store::Limits;
use image_store::oci::Platform;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Until a host has taken a connection, TLS included.
    pub connect: Duration,
    /// Until an answer begins.
    pub answer: Duration,
    /// Between two pieces of a body.
    pub progress: Duration,
    /// Other processes that write to the store.
    pub store: Duration,
    /// Other pulls that bring a layer of the same image: after that it is brought by both, as the other's registry may be slow.
    pub turn: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            answer: Duration::from_secs(60),
            progress: Duration::from_secs(60),
            store: Duration::from_secs(60),
            turn: Duration::from_secs(120),
        }
    }
}

/// How images are pulled.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder with a folder per registry, as containerd's `config_path`. `None`: each registry is asked itself.
    pub hosts_dir: Option<PathBuf>,
    /// The image for which machine.
    pub platform: Platform,
    /// What a layer may cost.
    pub limits: Limits,
    /// Layers of one image that come at once.
    pub layers_at_once: usize,
    /// Layers of all images that are unpacked at once.
    pub unpacked_at_once: usize,
    /// How long things may take.
    pub deadlines: Deadlines,
    /// How often the same is asked of one host.
    pub attempts: u32,
    /// How long the first wait between attempts is; each is twice the one before.
    pub first_wait: Duration,
}

impl Default for Settings {
    /// For this machine, as many layers at once as containerd.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            hosts_dir: None,
            platform: Platform::own(),
            limits: Limits::default(),
            layers_at_once: 3,
            unpacked_at_once: cores.clamp(1, 4),
            deadlines: Deadlines::default(),
            attempts: 5,
            first_wait: Duration::from_millis(250),
        }
    }
}
