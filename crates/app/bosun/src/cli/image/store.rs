//! Which store, and how long others are waited for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use image_store::ImageStore;

use crate::own_runtime::{ROOT, images_folder};

/// Which store.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArg {
    /// Folder of the runtime, as `bosun runtime --root` and `root` of its file have it; images are in its folder `images`.
    #[arg(long, value_name = "FOLDER", default_value = ROOT)]
    pub(super) root: PathBuf,
    /// Seconds to wait while another process changes the store.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(super) wait: u64,
}

impl StoreArg {
    pub(super) fn open(&self) -> Result<ImageStore> {
        if self.root.join("layers").is_dir() {
            let given = self.root.display();
            bail!(
                "--root {given}: is a folder of images; allowed: the folder of the runtime, in which that is `images`"
            );
        }
        let root = self.images();
        let opened = ImageStore::open(&root);
        let hint = if host_linux::is_root() { "" } else { " (images are root's: use sudo)" };
        let store = opened.with_context(|| format!("cannot use the images in {}{hint}", root.display()))?;
        for (record, why) in &store.checked().set_aside {
            eprintln!("bosun: {}: {why}; pull the image again", record.display());
        }
        Ok(store)
    }

    /// The folder of the images.
    pub(super) fn images(&self) -> PathBuf {
        images_folder(&self.root)
    }

    pub(super) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}
