//! bosun's own container runtime: where its things are unless somebody says otherwise, and a server that is about to take calls.
//! `bosun runtime` serves it by itself, `containerRuntimeEndpoint: embedded://` within the daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use model::node::CgroupDriver;
use node_config::{EmbeddedRuntime, NodeConfig};
use runtime_server::{CniNetworks, DirectoryImages, Images, Options, RuntimeFile, Server, StoreImages};

pub(crate) mod embedded;

/// OCI runtimes in the order of preference.
const OCI_RUNTIMES: [&str; 2] = ["runc", "crun"];
const SUPERVISOR: &str = "bosun-pod";

/// Where the CRI's socket is.
const LISTEN: &str = "/run/bosun/cri.sock";
/// What outlives a reboot.
pub(crate) const ROOT: &str = "/var/lib/bosun/runtime";
/// What does not.
const STATE: &str = "/run/bosun/runtime";
const CNI_CONF_DIR: &str = "/etc/cni/net.d";
const CNI_BIN_DIRS: [&str; 2] = ["/opt/cni/bin", "/usr/lib/cni"];
/// As containerd has them.
const CDI_SPEC_DIRS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];
const CNI_CACHE_DIR: &str = "/var/lib/cni";
pub(crate) const HOSTS_DIR: &str = "/etc/containerd/certs.d";

/// Everything that a server is made with, looked at and found. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct OwnRuntime {
    options: Options,
    cni_conf_dir: PathBuf,
    cni_bin_dirs: Vec<PathBuf>,
    cni_cache_dir: PathBuf,
    hosts_dir: PathBuf,
    /// Images that are folders, instead of the store's.
    directory_images: Option<PathBuf>,
}

/// Where a runtime whose folder is `root` keeps its images.
pub(crate) fn images_folder(root: &Path) -> PathBuf {
    root.join("images")
}

impl OwnRuntime {
    /// What `file` leaves out is as it is by default.
    ///
    /// # Errors
    /// A program is missing, or a place cannot be.
    pub(crate) fn of(file: RuntimeFile, systemd_cgroup: bool) -> Result<Self> {
        let or = |given: Option<PathBuf>, default: &str| given.unwrap_or_else(|| default.into());
        let options = Options {
            root: or(file.root, ROOT),
            run: or(file.state, STATE),
            listen: or(file.listen, LISTEN),
            oci_runtime: match file.oci_runtime {
                Some(program) => program,
                None => OCI_RUNTIMES.iter().find_map(|name| in_path(name)).context("neither runc nor crun in PATH")?,
            },
            oci_runtime_only: file.oci_runtime_only.unwrap_or_default(),
            handlers: file.handlers,
            supervisor: match file.supervisor {
                Some(program) => program,
                None => {
                    let found = beside_us().or_else(|| in_path(SUPERVISOR));
                    found.context("no bosun-pod beside this program or in PATH")?
                }
            },
            snapshotter: file.snapshotter.unwrap_or_default(),
            cdi_spec_dirs: file.cdi_spec_dir.unwrap_or_else(|| CDI_SPEC_DIRS.map(Into::into).to_vec()),
            systemd_cgroup,
        };
        options.check()?;
        Ok(Self {
            options,
            cni_conf_dir: or(file.cni_conf_dir, CNI_CONF_DIR),
            cni_bin_dirs: file.cni_bin_dir.unwrap_or_else(|| CNI_BIN_DIRS.map(Into::into).to_vec()),
            cni_cache_dir: or(file.cni_cache_dir, CNI_CACHE_DIR),
            hosts_dir: or(file.hosts_dir, HOSTS_DIR),
            directory_images: None,
        })
    }

    /// The one within a daemon; `None`: the daemon's configuration names another runtime. Cgroups are made as the daemon's are.
    ///
    /// # Errors
    /// All that would keep it from starting, as far as looking can tell.
    pub(crate) fn of_daemon(config: &NodeConfig) -> Result<Option<Self>> {
        let systemd_cgroup = config.cgroups.driver == CgroupDriver::Systemd;
        file_of_daemon(config)?.map(|file| Self::of(file, systemd_cgroup)).transpose()
    }

    /// Takes images from folders (`FOLDER/NAME/rootfs`).
    pub(crate) fn with_directory_images(self, folder: Option<PathBuf>) -> Self {
        Self { directory_images: folder, ..self }
    }

    /// The CRI's socket of the one within a daemon, for other processes: nothing else of it needs to be here. `None` as in
    /// [`OwnRuntime::of_daemon`].
    ///
    /// # Errors
    /// The file cannot be read, or says what cannot be.
    pub(crate) fn socket_of_daemon(config: &NodeConfig) -> Result<Option<PathBuf>> {
        Ok(file_of_daemon(config)?.map(|file| file.listen.unwrap_or_else(|| LISTEN.into())))
    }

    /// The CRI's socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.options.listen
    }

    /// Finds everything again, and takes calls once it is run.
    ///
    /// # Errors
    /// Another process serves the same folders, or something of them cannot be used.
    pub(crate) async fn server(&self) -> Result<Server> {
        if !host_linux::is_root() {
            bail!("only root can run pods");
        }
        let images: Arc<dyn Images> = match &self.directory_images {
            Some(folder) => Arc::new(DirectoryImages::new(folder)),
            None => {
                let root = images_folder(&self.options.root);
                let opened = StoreImages::open(root.clone(), Some(self.hosts_dir.clone())).await;
                Arc::new(opened.with_context(|| format!("the images in {}", root.display()))?)
            }
        };
        let networks = CniNetworks::start(&self.cni_conf_dir, self.cni_bin_dirs.clone(), &self.cni_cache_dir);
        Ok(Server::start(self.options.clone(), images, networks).await?)
    }
}

/// What the runtime within a daemon is told; `None`: the daemon's configuration names another runtime.
fn file_of_daemon(config: &NodeConfig) -> Result<Option<RuntimeFile>> {
    let Some(EmbeddedRuntime { file }) = config.runtime.embedded() else { return Ok(None) };
    Ok(Some(file.as_deref().map(RuntimeFile::read).transpose()?.unwrap_or_default()))
}

fn beside_us() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.parent()?.join(SUPERVISOR);
    beside.is_file().then_some(beside)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|f| f.join(name)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_leaves_out_is_as_it_is_by_default() {
        let program = std::env::current_exe().unwrap();
        let file = RuntimeFile {
            oci_runtime: Some(program.clone()),
            supervisor: Some(program.clone()),
            state: Some("/run/elsewhere".into()),
            ..RuntimeFile::default()
        };
        let own = OwnRuntime::of(file.clone(), true).unwrap();
        assert_eq!(own.socket(), Path::new(LISTEN));
        assert_eq!(
            (own.options.root.as_path(), own.options.run.as_path()),
            (Path::new(ROOT), Path::new("/run/elsewhere"))
        );
        assert_eq!(own.cni_bin_dirs, CNI_BIN_DIRS.map(PathBuf::from));
        assert!(own.options.systemd_cgroup);
        let missing = RuntimeFile { supervisor: Some("/no/such".into()), ..file };
        assert_eq!(OwnRuntime::of(missing, false).unwrap_err().to_string(), "/no/such: no such program");
    }

    #[test]
    fn the_one_of_a_daemon_is_there_only_where_its_endpoint_says_so() {
        let mut config = NodeConfig::default();
        assert!(OwnRuntime::of_daemon(&config).unwrap().is_none());
        let dir = tempfile::tempdir().unwrap();
        let (path, program) = (dir.path().join("runtime.toml"), std::env::current_exe().unwrap());
        let program = program.display();
        std::fs::write(
            &path,
            format!("listen = \"unix:///x.sock\"\noci-runtime = \"{program}\"\nsupervisor = \"{program}\"\n"),
        )
        .unwrap();
        config.runtime.container_runtime_endpoint = format!("embedded://{}", path.display());
        let own = OwnRuntime::of_daemon(&config).unwrap().unwrap();
        assert_eq!(own.socket(), Path::new("/x.sock"));
        let without_programs = "listen = \"unix:///x.sock\"\noci-runtime = \"/no/such\"\n";
        let beside = dir.path().join("beside.toml");
        std::fs::write(&beside, without_programs).unwrap();
        let mut other = config.clone();
        other.runtime.container_runtime_endpoint = format!("embedded://{}", beside.display());
        assert!(OwnRuntime::of_daemon(&other).is_err());
        assert_eq!(OwnRuntime::socket_of_daemon(&other).unwrap().as_deref(), Some(Path::new("/x.sock")));
        other.runtime.container_runtime_endpoint = "embedded://".to_owned();
        assert_eq!(OwnRuntime::socket_of_daemon(&other).unwrap().as_deref(), Some(Path::new(LISTEN)));
        assert!(!own.options.systemd_cgroup);
        config.cgroups.driver = CgroupDriver::Systemd;
        assert!(OwnRuntime::of_daemon(&config).unwrap().unwrap().options.systemd_cgroup);
        std::fs::write(&path, "port = 1\n").unwrap();
        let refused = OwnRuntime::of_daemon(&config).unwrap_err().to_string();
        assert!(refused.contains("runtime.toml") && refused.contains("unknown field `port`"), "{refused}");
    }
}
