//! By which configuration an ADD was begun: `<cache>/begun/<container>`. A crash, or a configuration that is removed meanwhile, leaves no
//! ADD in part that nobody can take back. It is not brought to the disk: a power cut takes the namespace too, and what plugins have
//! beside it is what their own garbage collection is for.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::conf::{MAX_FILE, NetworkList};
use crate::error::{CniError, failed};
use crate::network::Cni;

fn path(cache: &Path, container: &str) -> PathBuf {
    cache.join("begun").join(container)
}

impl Cni {
    /// Notes that a container is about to be given a network.
    ///
    /// # Errors
    /// Of the file system.
    pub fn begin(&self, list: &NetworkList, container: &str) -> Result<(), CniError> {
        let path = path(&self.cache, container);
        let named = || format!("write {}", path.display());
        fs::create_dir_all(self.cache.join("begun")).map_err(failed(named()))?;
        fs::write(&path, &list.bytes).map_err(failed(named()))
    }

    /// What a container was about to be given, until [`Cni::end`]; `None`: nothing was begun.
    ///
    /// # Errors
    /// Something was, and by what cannot be read.
    pub fn begun(&self, container: &str) -> Result<Option<NetworkList>, CniError> {
        let path = path(&self.cache, container);
        let named = || format!("read {}", path.display());
        let file = match fs::File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed(named()))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(failed(named()))?;
        NetworkList::parse(&bytes).map(Some).map_err(io::Error::other).map_err(failed(named()))
    }

    /// Forgets what was begun: it has been taken back. Not known is fine.
    ///
    /// # Errors
    /// Of the file system.
    pub fn end(&self, container: &str) -> Result<(), CniError> {
        let path = path(&self.cache, container);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(format!("remove {}", path.display()))(e)),
            _ => Ok(()),
        }
    }
}
