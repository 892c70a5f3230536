//! Which store, and how long others are waited for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use image_store::ImageStore;

/// Where the runtime keeps its images.
const ROOT: &str = "/var/lib/bosun/runtime/images";
/// Where containerd keeps its files of hosts.
pub(super) const HOSTS: &str = "/etc/containerd/certs.d";

/// Which store.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArg {
    /// Folder of the images.
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    pub(super) root: PathBuf,
    /// Seconds to wait while another process changes the store.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(super) wait: u64,
}

impl StoreArg {
    pub(super) fn open(&self) -> Result<ImageStore> {
        let opened = ImageStore::open(&self.root);
        let hint = if host_linux::is_root() { "" } else { " (images are root's: use sudo)" };
        let store = opened.with_context(|| format!("cannot use the images in {}{hint}", self.root.display()))?;
        for (record, why) in &store.checked().set_aside {
            eprintln!("bosun: {}: {why}; pull the image again", record.display());
        }
        Ok(store)
    }

    pub(super) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}
