//! Certificates on disk. Everything here blocks, and each change is one rename: a daemon that dies in between finds the old
//! pair or the new one.

use std::path::{Path, PathBuf};

use cert_rotation::certificate::{read, split, split_pair};
use cert_rotation::{Facts, Files, Parts, PemError};
use contract::certificates::KeyPair;
use model::Timestamp;
use ports::host::{FileKind, HostError, HostFs};
use serde::{Deserialize, Serialize};

use crate::signing;

const MAX_BYTES: u64 = 1 << 20;

/// Why certificates cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("cannot use the certificate folder")]
    Host(#[from] HostError),
    #[error("{} must be a symbolic link", .0.display())]
    NotALink(PathBuf),
    #[error("{}", path.display())]
    Pem { path: PathBuf, source: PemError },
    #[error("{}: the key does not belong to the certificate", .0.display())]
    KeyMismatch(PathBuf),
    #[error("cannot make a certificate")]
    Making(#[from] rcgen::Error),
}

/// A pair and what it says.
#[derive(Clone, Debug)]
pub(crate) struct StoredPair {
    pub(crate) pair: KeyPair,
    pub(crate) facts: Facts,
}

/// Makes a pair of two texts that were read from `path`.
pub(crate) fn stored_pair(certificates: String, key: String, path: &Path) -> Result<StoredPair, StoreError> {
    let facts = read(&certificates).map_err(|source| StoreError::Pem { path: path.to_owned(), source })?;
    if signing::public_key(&key).is_some_and(|public| public != facts.public_key) {
        return Err(StoreError::KeyMismatch(path.to_owned()));
    }
    let pair = KeyPair {
        certificate_pem: certificates,
        key_pem: key,
        not_before: Timestamp::from_secs(facts.not_before_s),
        not_after: Timestamp::from_secs(facts.not_after_s),
    };
    Ok(StoredPair { pair, facts })
}

fn text(fs: &dyn HostFs, path: &Path) -> Result<String, HostError> {
    fs.read_file(path, MAX_BYTES).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a pair that is kept in two files; `None` when one of them is not there.
pub(crate) fn load_two(fs: &dyn HostFs, certificate: &Path, key: &Path) -> Result<Option<StoredPair>, StoreError> {
    let (chain, secret) = match (text(fs, certificate), text(fs, key)) {
        (Ok(chain), Ok(secret)) => (chain, secret),
        (Err(e), _) | (_, Err(e)) if e.is_not_found() => return Ok(None),
        (Err(e), _) | (_, Err(e)) => return Err(e.into()),
    };
    let wrap = |source| StoreError::Pem { path: certificate.to_owned(), source };
    let parts =
        Parts { certificates: split(&chain).map_err(wrap)?.certificates, key: split(&secret).map_err(wrap)?.key };
    if parts.key.is_empty() {
        return Err(StoreError::Pem { path: key.to_owned(), source: PemError::NoKey });
    }
    stored_pair(parts.certificates, parts.key, certificate).map(Some)
}

fn kind(fs: &dyn HostFs, path: &Path) -> Result<Option<FileKind>, HostError> {
    Ok(fs.stat_link(path)?.map(|s| s.kind))
}

fn must_be_link(fs: &dyn HostFs, path: &Path) -> Result<bool, StoreError> {
    match kind(fs, path)? {
        None => Ok(false),
        Some(FileKind::Symlink) => Ok(true),
        Some(_) => Err(StoreError::NotALink(path.to_owned())),
    }
}

/// Reads the pair in force: the current one, else the configured files, else those of the older layout. A link that was about
/// to become current when the daemon died becomes it.
pub(crate) fn load(
    fs: &dyn HostFs,
    files: &Files,
    configured: Option<&(PathBuf, PathBuf)>,
) -> Result<Option<StoredPair>, StoreError> {
    let current = files.current();
    if !must_be_link(fs, &current)? && must_be_link(fs, &files.updated())? {
        fs.rename(&files.updated(), &current)?;
    }
    if must_be_link(fs, &current)? {
        let parts =
            split_pair(&text(fs, &current)?).map_err(|source| StoreError::Pem { path: current.clone(), source })?;
        return stored_pair(parts.certificates, parts.key, &current).map(Some);
    }
    if let Some((certificate, key)) = configured
        && let Some(found) = load_two(fs, certificate, key)?
    {
        return Ok(Some(found));
    }
    load_two(fs, &files.old_certificate(), &files.old_key())
}

/// Keeps a pair and makes it the current one.
pub(crate) fn save(fs: &dyn HostFs, files: &Files, pair: &KeyPair, now_s: i64) -> Result<(), StoreError> {
    let (current, updated, dated) = (files.current(), files.updated(), files.dated(now_s));
    fs.create_dir(files.dir(), 0o755)?;
    must_be_link(fs, &current)?;
    if must_be_link(fs, &updated)? {
        fs.remove_file(&updated)?;
    }
    fs.write_file_synced(&dated, format!("{}{}", pair.certificate_pem, pair.key_pem).as_bytes(), 0o600)?;
    fs.symlink(&dated, &updated)?;
    fs.rename(&updated, &current)?;
    // The signer will not give this certificate a second time.
    Ok(fs.sync_dir(files.dir())?)
}

/// An open request, as the next life of the daemon finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending {
    /// The key that the request is for.
    pub(crate) key_pem: String,
    /// What was asked for ([`cert_rotation::Template::fingerprint`]).
    pub(crate) template: String,
    /// The request itself, once it was accepted.
    pub(crate) request: Option<Named>,
}

/// A request that the server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    /// When it was made, seconds since the epoch.
    pub(crate) created_s: i64,
}

/// The open request that fits `template`, if there is one. One that cannot be read counts as none.
pub(crate) fn load_pending(fs: &dyn HostFs, files: &Files, template: &str) -> Option<Pending> {
    let pending: Pending = serde_json::from_str(&text(fs, &files.pending()).ok()?).ok()?;
    (pending.template == template && signing::public_key(&pending.key_pem).is_some()).then_some(pending)
}

/// Forgets the open request when its certificate is the one in force: the daemon died between keeping the one and forgetting
/// the other, and the next rotation must not get the same certificate again.
pub(crate) fn forget_spent(fs: &dyn HostFs, files: &Files, current: &StoredPair) -> Result<(), StoreError> {
    let spent = |pending: Pending| signing::public_key(&pending.key_pem).is_some_and(|k| k == current.facts.public_key);
    let pending = text(fs, &files.pending()).ok().and_then(|t| serde_json::from_str(&t).ok());
    if pending.is_some_and(spent) { forget_pending(fs, files) } else { Ok(()) }
}

/// Keeps an open request.
pub(crate) fn save_pending(fs: &dyn HostFs, files: &Files, pending: &Pending) -> Result<(), StoreError> {
    fs.create_dir(files.dir(), 0o755)?;
    let json = serde_json::to_vec(pending).expect("strings and numbers are JSON");
    Ok(fs.write_file_synced(&files.pending(), &json, 0o600)?)
}

/// Forgets the open request.
pub(crate) fn forget_pending(fs: &dyn HostFs, files: &Files) -> Result<(), StoreError> {
    fs.remove_file(&files.pending())?;
    Ok(fs.remove_file(&files.bootstrap_key())?)
}

/// The key of a bootstrap without rotation: the one of the last life, or a new one.
pub(crate) fn bootstrap_key(fs: &dyn HostFs, files: &Files) -> Result<String, StoreError> {
    if let Ok(key) = text(fs, &files.bootstrap_key())
        && signing::public_key(&key).is_some()
    {
        return Ok(key);
    }
    let key = signing::new_key()?;
    fs.create_dir(files.dir(), 0o755)?;
    fs.write_file_synced(&files.bootstrap_key(), key.as_bytes(), 0o600)?;
    Ok(key)
}

/// The self-signed pair of `kubelet.crt` and `kubelet.key`, made when it cannot be read. Its end is nobody's concern.
pub(crate) fn self_signed(fs: &dyn HostFs, dir: &Path, hostname: &str, now_s: i64) -> Result<StoredPair, StoreError> {
    let (certificate, key) = (dir.join("kubelet.crt"), dir.join("kubelet.key"));
    if let Ok(Some(found)) = load_two(fs, &certificate, &key) {
        return Ok(found);
    }
    let (chain, secret) = signing::self_signed(hostname, now_s)?;
    fs.create_dir(dir, 0o755)?;
    fs.write_file_synced(&certificate, chain.as_bytes(), 0o644)?;
    fs.write_file_synced(&key, secret.as_bytes(), 0o600)?;
    stored_pair(chain, secret, &certificate)
}
