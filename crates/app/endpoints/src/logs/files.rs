//! Go's file server: what a path means, and what is answered.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use actor::{Class, Effects};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::url::unescape;

use super::served::Served;
use super::{body, conditions, listing};
use crate::respond::{error, status_text};

/// The folder that is served, and one more into which links may lead.
pub(super) type Roots = [PathBuf; 2];

/// What a path turned out to be.
enum Found {
    Folder(Metadata, Vec<listing::Entry>),
    /// A folder with a page of its own.
    Page(File, Metadata),
    File(File, Metadata),
}

/// Go's answers to what a file system says.
fn refused(e: &io::Error) -> Response {
    match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => error(StatusCode::NOT_FOUND, "404 page not found"),
        io::ErrorKind::PermissionDenied => status_text(StatusCode::FORBIDDEN),
        _ => status_text(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// What stands at a path below the roots, or the answer that there is nothing to serve.
async fn look_up(effects: &Effects, roots: Roots, name: Vec<u8>) -> Result<Found, Response> {
    match effects.attempt(Class::ServedFiles, move || find(&roots, &name)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(e)) => Err(refused(&e)),
        Err(_) => Err(status_text(StatusCode::INTERNAL_SERVER_ERROR)),
    }
}

/// Serves what stands behind `/logs`. `path`: as the request has it, with its escapes.
pub(super) async fn serve(
    effects: &Effects,
    roots: Roots,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let Ok(decoded) = unescape(path).map(Cow::into_owned) else { return status_text(StatusCode::BAD_REQUEST) };
    if decoded.ends_with(b"/index.html") {
        return moved("./");
    }
    let found = match look_up(effects, roots, decoded.clone()).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let slash = decoded.last() == Some(&b'/');
    // Relative redirects, as Go makes them; the name keeps the escapes that it came with.
    let base = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let served = |file| Served::new(file, effects);
    match found {
        Found::Folder(..) | Found::Page(..) if !slash => moved(&format!("{base}/")),
        Found::Page(file, meta) => body::file("index.html", served(file), &meta, method, headers).await,
        Found::Folder(meta, entries) => conditions::unless_unchanged(&meta, headers, || listing::page(&entries)),
        Found::File(..) if slash => moved(&format!("../{base}")),
        Found::File(file, meta) => {
            body::file(&String::from_utf8_lossy(&decoded), served(file), &meta, method, headers).await
        }
    }
}

/// Serves one file by its path below the root; a folder is refused.
pub(super) async fn serve_file(
    effects: &Effects,
    roots: Roots,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    match look_up(effects, roots, path.as_bytes().to_vec()).await {
        Ok(Found::File(file, meta)) => body::file(path, Served::new(file, effects), &meta, method, headers).await,
        Ok(Found::Folder(..) | Found::Page(..)) => error(StatusCode::NOT_FOUND, "404 page not found"),
        Err(answer) => answer,
    }
}

fn moved(to: &str) -> Response {
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, to.to_owned())]).into_response()
}

/// The path without `.`, `..` and doubled slashes; it never leads above its root.
pub(super) fn clean(path: &[u8]) -> io::Result<PathBuf> {
    if path.contains(&0) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Ok(PathBuf::from(OsStr::from_bytes(&parts.join(&b'/'))))
}

fn find(roots: &Roots, path: &[u8]) -> io::Result<Found> {
    let path = roots[0].join(clean(path)?);
    let (file, meta) = open(roots, &path)?;
    if !meta.is_dir() {
        return Ok(Found::File(file, meta));
    }
    match open(roots, &path.join("index.html")) {
        Ok((page, meta)) if meta.is_file() => Ok(Found::Page(page, meta)),
        // The very folder that was looked at: its name may be a link to elsewhere by now.
        _ => Ok(Found::Folder(meta, listing::read(&by_descriptor(&file))?)),
    }
}

/// Opens a file or folder and looks where it truly is: what lies outside of the roots is refused, however the path led there.
pub(super) fn open(roots: &Roots, path: &Path) -> io::Result<(File, Metadata)> {
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::InvalidInput => io::Error::from(io::ErrorKind::PermissionDenied),
        _ => e,
    };
    let file = host_linux::open_file_or_folder(path).map_err(refused)?;
    let meta = file.metadata()?;
    let real = real_path(&file)?;
    let inside = roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root));
    if !inside {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    Ok((file, meta))
}

/// Where an open file is, by the kernel's word.
fn real_path(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(by_descriptor(file))
}

/// A path that leads to an open file, whatever became of its name.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
