//! Paths of the host as volumes (node-and-resources 6.8).

use std::path::Path;

use actor::chain;
use ports::host::{FileKind, HostError, HostFs};

/// Whether a path may be mounted and is what it is said to be; makes it where that is asked for. Blocks.
pub(crate) fn check(fs: &dyn HostFs, path: &str, check: &str) -> Result<(), String> {
    if path.split('/').any(|part| part == "..") {
        return Err(format!("invalid HostPath `{path}`: must not contain '..'"));
    }
    if check.is_empty() {
        // Nothing is asked of it: the path is not touched, for whoever mounts it may not be able to.
        return Ok(());
    }
    let at = Path::new(path);
    let found = |e: HostError| chain(&e);
    let kind = fs.stat(at).map_err(found)?.map(|s| s.kind);
    let (fits, what) = match check {
        "DirectoryOrCreate" if kind.is_none() => return fs.create_dir(at, 0o755).map_err(found),
        "FileOrCreate" if kind.is_none() => return fs.create_file(at, 0o644).map_err(found),
        "DirectoryOrCreate" | "Directory" => (FileKind::Dir, "directory"),
        "FileOrCreate" | "File" => (FileKind::File, "file"),
        "Socket" => (FileKind::Socket, "socket file"),
        "CharDevice" => (FileKind::CharDevice, "character device"),
        "BlockDevice" => (FileKind::BlockDevice, "block device"),
        other => return Err(format!("{other} is an invalid volume type")),
    };
    if kind == Some(fits) { Ok(()) } else { Err(format!("hostPath type check failed: {path} is not a {what}")) }
}
