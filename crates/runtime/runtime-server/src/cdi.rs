//! Files of the Container Device Interface, and the devices that they name. They are read when a container asks for one: that is
//! rare, and what was written just before (by a plugin that makes the device) counts.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use container_spec::Brought;
use container_spec::cdi::{Found, Known, NodeEdit, asked, is_file_name};
use cri_api::v1;

use crate::error::{At, Done, RuntimeError};
use crate::process;

/// Bytes of a file.
const MAX_FILE: u64 = 4 << 20;
/// Files of a folder.
const MAX_FILES: usize = 1000;

/// What the devices of a container bring, by the files in `folders`, of which a later one outdoes those before it.
pub(crate) fn brought(folders: &[PathBuf], config: &v1::ContainerConfig) -> Done<Brought> {
    let names = asked(config);
    if names.is_empty() {
        return Ok(Brought::default());
    }
    let mut found = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        read_folder(number, folder, &mut found)?;
    }
    let edits = Known::of(found).edits(&names)?;
    let look = |node: &NodeEdit| {
        if node.is_complete() { Ok(None) } else { process::device(node.source()) }
    };
    let found = edits.device_nodes.iter().map(look).collect::<Done<Vec<_>>>()?;
    Ok(Brought { edits, found })
}

/// One that is not there has no files.
fn read_folder(number: usize, folder: &Path, found: &mut Vec<Found>) -> Done<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).at("readdir", folder),
    };
    for entry in entries {
        let path = entry.at("readdir", folder)?.path();
        if !is_file_name(&path) {
            continue;
        }
        if found.len() >= MAX_FILES {
            return Err(RuntimeError::Refused(format!("{}: more than {MAX_FILES} files", folder.display())));
        }
        let text = read(&path).map_err(|e| e.to_string());
        found.push(Found { path, folder: number, text });
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let count = host_linux::open_regular(path, ports::host::Links::Follow)?.take(MAX_FILE).read_to_string(&mut text)?;
    if count as u64 == MAX_FILE { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_when_a_container_asks_and_nodes_are_looked_at() {
        let dir = tempfile::tempdir().expect("a folder");
        let folders = [dir.path().join("etc"), dir.path().join("run"), dir.path().join("none")];
        folders[..2].iter().for_each(|f| fs::create_dir(f).expect("made"));
        let file = |node: &str| {
            format!(
                "cdiVersion: 0.6.0\nkind: v.com/null\ndevices: [{{name: a, containerEdits: {{deviceNodes: [{{path: {node}}}]}}}}]\n"
            )
        };
        fs::write(folders[0].join("a.yaml"), file("/none/such")).expect("written");
        fs::write(folders[0].join("a.yaml.old"), "no file of ours").expect("written");
        std::os::unix::fs::symlink("/none/such", folders[0].join("gone.json")).expect("a link that leads nowhere");
        let config = |name: &str| v1::ContainerConfig {
            cdi_devices: vec![v1::CdiDevice { name: name.to_owned() }],
            ..Default::default()
        };
        assert_eq!(brought(&folders, &v1::ContainerConfig::default()).expect("nothing").found, []);
        let lacking = brought(&folders, &config("v.com/null=a")).expect("known");
        assert_eq!(lacking.found, [None], "nothing is there");
        fs::write(folders[1].join("b.yaml"), file("/dev/null")).expect("written");
        let found = brought(&folders, &config("v.com/null=a")).expect("known").found;
        let node = found[0].as_ref().expect("a device");
        assert_eq!((node.major, node.minor), (1, 3));
        let unknown = brought(&folders, &config("v.com/null=b")).expect_err("unknown").to_string();
        let why = format!("{}/gone.json: No such file or directory (os error 2)", folders[0].display());
        assert_eq!(unknown, format!("unresolvable CDI devices v.com/null=b; {why}"));
    }
}
