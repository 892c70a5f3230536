//! Where a command's program is, told or missed in the words of `runc`.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat};
use rustix::io::Errno;

use crate::helper::words;

/// The program of a name, for whoever is in the container, as its user, already.
pub(super) fn find(name: &str, path: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return match executable(Path::new(name)) {
            Ok(()) => Ok(name.into()),
            Err(Errno::NOENT) => Err(format!("stat {name}: no such file or directory")),
            Err(e) => Err(words(&e.into())),
        };
    }
    let mut denied = false;
    for folder in path.split(':').filter(|_| !name.is_empty()) {
        let candidate = Path::new(if folder.is_empty() { "." } else { folder }).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(e) => denied |= e == Errno::ACCESS && candidate.is_file(),
        }
    }
    Err(if denied { "permission denied" } else { "executable file not found in $PATH" }.to_owned())
}

fn executable(path: &Path) -> Result<(), Errno> {
    let facts = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
        return Err(Errno::ISDIR);
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_found_or_missed_in_the_words_of_runc() {
        let dir = tempfile::tempdir().expect("folder");
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("yes", 0o755), ("no", 0o644)] {
            std::fs::write(at(name), "").expect("written");
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).expect("mode");
        }
        std::fs::create_dir(at("folder")).expect("folder");
        let path = format!("/nowhere:{}", dir.path().display());
        let of = |name: &str| find(name, &path).map_err(|e| e.replace(&dir.path().display().to_string(), "D"));
        assert_eq!(of("yes"), Ok(at("yes")));
        assert_eq!(of(&at("yes").display().to_string()), Ok(at("yes")));
        assert_eq!(of("none"), Err("executable file not found in $PATH".into()));
        assert_eq!(of(""), Err("executable file not found in $PATH".into()));
        assert_eq!(of("no"), Err("permission denied".into()));
        assert_eq!(of(&at("none").display().to_string()), Err("stat D/none: no such file or directory".into()));
        assert_eq!(of(&at("no").display().to_string()), Err("permission denied".into()));
        assert_eq!(of(&at("folder").display().to_string()), Err("is a directory".into()));
        assert_eq!(find("yes", ""), Err("executable file not found in $PATH".into()));
    }
}
