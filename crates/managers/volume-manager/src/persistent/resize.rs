//! A file system on a disk of this node takes all the room that the disk has got (node-and-resources 6.13, Expansion).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, chain};
use ports::host::{Mounter, ProgramEnd};

use crate::task::TaskContext;

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(180);

/// What lets a file system grow that is mounted at `at` from `device`.
fn program(fs_type: &str, device: &str, at: &Path) -> Option<(&'static str, Vec<String>)> {
    let (device, at) = (device.to_owned(), at.display().to_string());
    Some(match fs_type {
        "ext3" | "ext4" => ("resize2fs", vec![device]),
        "xfs" => ("xfs_growfs", vec!["-d".to_owned(), at]),
        "btrfs" => ("btrfs", vec!["filesystem".to_owned(), "resize".to_owned(), "max".to_owned(), at]),
        _ => return None,
    })
}

/// Lets the file system grow that is mounted at `at` from this device.
///
/// # Errors
/// The program's words, or there is none for this file system, in a kubelet's words.
pub(super) async fn whole(
    mounts: Arc<dyn Mounter>,
    task: &TaskContext,
    (root, at): (PathBuf, PathBuf),
    device: String,
) -> Result<(), String> {
    let work = move || {
        let table = mounts.mount_table(&root).map_err(|e| chain(&e))?;
        let fs_type = table.into_iter().rfind(|line| line.at == at).map(|line| line.fs_type).unwrap_or_default();
        let (program, arguments) = program(&fs_type, &device, &at).ok_or_else(|| {
            let at = at.display();
            format!("ResizeFS.Resize - resize of format {fs_type} is not supported for device {device} mounted at {at}")
        })?;
        let failed = |why: String| format!("resize of device {device} failed: {why}");
        match mounts.run_program(program, &arguments, LIMIT) {
            Ok(ProgramEnd { code: Some(0), .. }) => Ok(()),
            Ok(ProgramEnd { code, words }) => {
                let code = code.map_or("a signal ended it".to_owned(), |code| format!("exit status {code}"));
                Err(failed(format!("{code}. {program} output: {words}")))
            }
            Err(e) if e.is_not_found() => Err(failed(format!("this node has no {program}"))),
            Err(e) => Err(failed(chain(&e))),
        }
    };
    task.blocking(Class::UserPaths, work).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::program;

    #[test]
    fn each_file_system_has_its_program() {
        let line = |fs_type: &str| {
            let (program, arguments) = program(fs_type, "/dev/sdx", Path::new("/m"))?;
            Some(format!("{program} {}", arguments.join(" ")))
        };
        let found = ["ext3", "ext4", "xfs", "btrfs", "ext2", ""].map(line);
        let wanted = ["resize2fs /dev/sdx", "resize2fs /dev/sdx", "xfs_growfs -d /m", "btrfs filesystem resize max /m"];
        let wanted = wanted.map(|w| Some(w.to_owned())).into_iter().chain([None, None]).collect::<Vec<_>>();
        assert_eq!(found.to_vec(), wanted);
    }
}
