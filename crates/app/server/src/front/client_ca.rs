//! Authorities of client certificates: a file that is read again when it changes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;
use tokio_rustls::rustls::DistinguishedName;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;

use super::error::ServeError;

/// Largest bundle that is read, bytes.
const LARGEST: u64 = 4 << 20;

/// One reading of the file.
#[derive(Debug)]
pub(super) struct Bundle {
    /// Grows with each reading.
    pub(super) generation: u64,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Bundle {
    fn parse(pem: &[u8], generation: u64) -> Result<Self, String> {
        let roots = ::tls::authorities(pem).map_err(|e| e.to_string())?;
        if roots.is_empty() {
            return Err("it holds no certificate".to_owned());
        }
        Ok(Self { generation, verifier: ::tls::clients_of(roots).map_err(|e| e.to_string())? })
    }

    /// Names of the authorities, for clients that choose a certificate by them.
    pub(super) fn hints(&self) -> Vec<DistinguishedName> {
        self.verifier.root_hint_subjects().to_vec()
    }

    /// Whether a chain (leaf first) leads to one of the authorities, is valid now and is for clients.
    pub(super) fn verify(&self, chain: &[CertificateDer<'_>]) -> Result<(), String> {
        let Some((leaf, rest)) = chain.split_first() else { return Err("no certificate".to_owned()) };
        let verified = self.verifier.verify_client_cert(leaf, rest, UnixTime::now());
        verified.map(drop).map_err(|e| e.to_string())
    }
}

/// What tells that a file is another one: device, inode, size, time of change.
type Mark = Option<(u64, u64, u64, i64, i64)>;

#[derive(Debug)]
struct Looked {
    at: Instant,
    /// Of the file that is in force.
    mark: Mark,
    /// What was complained about last.
    bad: Option<(Mark, String)>,
}

/// The file.
#[derive(Debug)]
pub(super) struct ClientCa {
    path: PathBuf,
    every: Duration,
    looked: Mutex<Looked>,
    bundle: ArcSwap<Bundle>,
}

impl ClientCa {
    /// Reads the file for the first time.
    pub(super) fn read(path: &Path, every: Duration) -> Result<Self, ServeError> {
        let mark = mark(path);
        let bundle = load(path, 1).map_err(|reason| ServeError::ClientCa { path: path.to_owned(), reason })?;
        let looked = Mutex::new(Looked { at: Instant::now(), mark, bad: None });
        Ok(Self { path: path.to_owned(), every, looked, bundle: ArcSwap::from_pointee(bundle) })
    }

    /// The authorities in force. Looks at the file when the last look is long enough ago; a file that cannot be used changes
    /// nothing.
    pub(super) fn current(&self) -> Arc<Bundle> {
        // Somebody else looks right now: what is known will do.
        if let Ok(mut looked) = self.looked.try_lock()
            && looked.at.elapsed() >= self.every
        {
            looked.at = Instant::now();
            let mark = mark(&self.path);
            if mark != looked.mark {
                self.reload(mark, &mut looked);
            }
        }
        self.bundle.load_full()
    }

    /// What cannot be used now is tried again at the next look: the fault may be the machine's, not the file's.
    fn reload(&self, mark: Mark, looked: &mut Looked) {
        let path = self.path.display();
        match load(&self.path, self.bundle.load().generation + 1) {
            Ok(bundle) => {
                self.bundle.store(Arc::new(bundle));
                (looked.mark, looked.bad) = (mark, None);
                tracing::info!(%path, "client CA file changed and is in force");
            }
            Err(reason) => {
                let bad = Some((mark, reason));
                if looked.bad != bad {
                    let reason = bad.as_ref().map(|(_, reason)| reason);
                    tracing::warn!(%path, reason, "client CA file changed and cannot be used, the old one holds");
                    looked.bad = bad;
                }
            }
        }
    }
}

fn mark(path: &Path) -> Mark {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec()))
}

fn load(path: &Path, generation: u64) -> Result<Bundle, String> {
    let facts = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !facts.is_file() || facts.len() > LARGEST {
        return Err("it is no file of certificates".to_owned());
    }
    Bundle::parse(&std::fs::read(path).map_err(|e| e.to_string())?, generation)
}
