//! Files of the node that may hold credentials.

use std::path::{Path, PathBuf};

/// A file to look into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeFile {
    /// Where.
    pub path: PathBuf,
    /// Read it with [`parse_config_json`](crate::parse_config_json), else with
    /// [`parse_dockercfg`](crate::parse_dockercfg).
    pub config_json: bool,
}

/// Files in the order of looking: the first that can be read and parsed counts, the others are not read.
#[must_use]
pub fn node_files(root_dir: &Path, working_dir: &Path, home: Option<&Path>) -> Vec<NodeFile> {
    let file = |path: PathBuf, config_json| NodeFile { path, config_json };
    let mut out = vec![file(root_dir.join("config.json"), true), file(working_dir.join("config.json"), true)];
    out.extend(home.map(|h| file(h.join(".docker/config.json"), true)));
    out.push(file("/.docker/config.json".into(), true));
    out.extend([root_dir, working_dir].map(|d| file(d.join(".dockercfg"), false)));
    out.extend(home.map(|h| file(h.join(".dockercfg"), false)));
    out.push(file("/.dockercfg".into(), false));
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::node_files;

    #[test]
    fn new_files_come_before_old_ones_and_the_root_directory_first() {
        let list = |home| -> Vec<String> {
            let files = node_files(Path::new("/var/lib/kubelet"), Path::new("/work"), home);
            files.iter().map(|f| format!("{} {}", f.path.display(), f.config_json)).collect()
        };
        assert_eq!(
            list(Some(Path::new("/root"))),
            [
                "/var/lib/kubelet/config.json true",
                "/work/config.json true",
                "/root/.docker/config.json true",
                "/.docker/config.json true",
                "/var/lib/kubelet/.dockercfg false",
                "/work/.dockercfg false",
                "/root/.dockercfg false",
                "/.dockercfg false",
            ]
        );
        assert_eq!(list(None).len(), 6);
    }
}
