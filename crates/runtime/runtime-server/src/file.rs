//! The file of a runtime: where its things are, by what it starts containers. All of it may be left out.
//!
//! ```toml
//! listen = "unix:///run/bosun/cri.sock"
//! hosts-dir = "/etc/containerd/certs.d"
//! [handlers.crun]
//! program = "/usr/bin/crun"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::unix_address::UnixAddress;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::{At, RuntimeError};
use crate::handlers;
use crate::options::Snapshotter;

/// What the file says, in the words of the flags of `bosun runtime`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuntimeFile {
    /// The CRI's socket.
    #[serde(deserialize_with = "socket")]
    pub listen: Option<PathBuf>,
    /// What must outlive a reboot.
    pub root: Option<PathBuf>,
    /// What must not.
    pub state: Option<PathBuf>,
    /// The OCI runtime of pods that ask for none.
    pub oci_runtime: Option<PathBuf>,
    /// It starts all containers and commands.
    pub oci_runtime_only: Option<bool>,
    /// How containers get the files of their images.
    pub snapshotter: Option<Snapshotter>,
    /// The program `bosun-pod`.
    pub supervisor: Option<PathBuf>,
    /// Configurations of pod networks.
    pub cni_conf_dir: Option<PathBuf>,
    /// Folders of network plugins.
    pub cni_bin_dir: Option<Vec<PathBuf>>,
    /// What network plugins answered.
    pub cni_cache_dir: Option<PathBuf>,
    /// Folders of the Container Device Interface's files.
    pub cdi_spec_dir: Option<Vec<PathBuf>>,
    /// How registries are reached.
    pub hosts_dir: Option<PathBuf>,
    /// OCI runtimes that pods may ask for, by name.
    #[serde(deserialize_with = "handlers::named")]
    pub handlers: BTreeMap<String, PathBuf>,
}

impl RuntimeFile {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or says what cannot be.
    pub fn read(path: &Path) -> Result<Self, RuntimeError> {
        let text = fs::read_to_string(path).at("read", path)?;
        Self::parse(&text).map_err(|why| RuntimeError::Refused(format!("{}: {}", path.display(), why.trim_end())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        match file.paths().into_iter().find(|(_, path)| !path.is_absolute()) {
            Some((key, path)) => Err(format!("{key}: {}: not an absolute path", path.display())),
            None => Ok(file),
        }
    }

    /// Every path beside those of handlers, with its key.
    fn paths(&self) -> Vec<(&'static str, &Path)> {
        let single = [
            ("root", &self.root),
            ("state", &self.state),
            ("oci-runtime", &self.oci_runtime),
            ("supervisor", &self.supervisor),
            ("cni-conf-dir", &self.cni_conf_dir),
            ("cni-cache-dir", &self.cni_cache_dir),
            ("hosts-dir", &self.hosts_dir),
        ];
        let single = single.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)));
        let several = [("cni-bin-dir", &self.cni_bin_dir), ("cdi-spec-dir", &self.cdi_spec_dir)];
        let several = several.into_iter().flat_map(|(key, all)| all.iter().flatten().map(move |p| (key, p.as_path())));
        single.chain(several).collect()
    }
}

fn socket<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let address = UnixAddress::parse(&String::deserialize(from)?);
    let address = address.map_err(|e| D::Error::custom(format!("listen: {e} (allowed: unix:///absolute/path)")))?;
    Ok(Some(address.socket().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_refused(bad: &str, why: &str) {
        let refused = RuntimeFile::parse(bad).expect_err(bad);
        assert!(refused.contains(why), "{bad}: {refused}");
    }

    #[test]
    fn handlers_are_names_and_programs() {
        let two = "[handlers.crun]\nprogram = \"/usr/bin/crun\"\n[handlers.kata-qemu]\nprogram = \"/opt/k\"\n";
        let found = RuntimeFile::parse(two).expect("good").handlers;
        assert_eq!(found.keys().collect::<Vec<_>>(), ["crun", "kata-qemu"]);
        assert_eq!(RuntimeFile::parse("").expect("nothing"), RuntimeFile::default());
        for (bad, why) in [
            ("[handlers.Crun]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.\"a/b\"]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.-a]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.a]\nprogram = \"runc\"", "absolute"),
            ("[handlers.a]\nprogram = \"/a\"\nroot = \"/b\"", "unknown field"),
            ("[handler.a]\nprogram = \"/a\"", "unknown field"),
            ("[handlers.a]", "program"),
        ] {
            assert_refused(bad, why);
        }
    }

    #[test]
    fn places_are_named_as_the_flags_are_and_absolute() {
        let text = "listen = \"unix:///run/x.sock\"\nroot = \"/a\"\nstate = \"/b\"\noci-runtime = \"/c\"\n\
                    supervisor = \"/d\"\ncni-conf-dir = \"/e\"\ncni-bin-dir = [\"/f\", \"/g\"]\n\
                    cni-cache-dir = \"/h\"\noci-runtime-only = true\nsnapshotter = \"native\"\nhosts-dir = \"/i\"\ncdi-spec-dir = [\"/j\"]\n";
        let file = RuntimeFile::parse(text).expect("good");
        assert_eq!((file.listen.as_deref(), file.oci_runtime_only), (Some(Path::new("/run/x.sock")), Some(true)));
        assert_eq!(file.snapshotter, Some(Snapshotter::Native));
        let told: Vec<String> = file.paths().iter().map(|(key, path)| format!("{key} {}", path.display())).collect();
        let all = "root /a, state /b, oci-runtime /c, supervisor /d, cni-conf-dir /e, cni-cache-dir /h, hosts-dir /i, \
                   cni-bin-dir /f, cni-bin-dir /g, cdi-spec-dir /j";
        assert_eq!(told.join(", "), all);
        for (bad, why) in [
            ("listen = \"/run/x.sock\"", "listen: "),
            ("listen = \"tcp://h:1\"", "listen: "),
            ("root = \"a\"", "root: a: not an absolute path"),
            ("cni-bin-dir = [\"/f\", \"g\"]", "cni-bin-dir: g: not an absolute path"),
            ("cni_bin_dir = []", "unknown field"),
            ("snapshotter = \"btrfs\"", "expected `overlayfs` or `native`"),
        ] {
            assert_refused(bad, why);
        }
    }
}
