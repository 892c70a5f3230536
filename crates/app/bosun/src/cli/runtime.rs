//! `bosun runtime`: a container runtime of our own behind the CRI.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use model::unix_address::UnixAddress;
use runtime_server::{CniNetworks, DirectoryImages, Images, Options, Server, StoreImages, read_handlers};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// OCI runtimes in the order of preference.
const OCI_RUNTIMES: [&str; 2] = ["runc", "crun"];
const SUPERVISOR: &str = "bosun-pod";

/// What the runtime is started with.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where it takes calls. Only root may open the socket.
    #[arg(long, value_name = "unix:///PATH", value_parser = UnixAddress::parse, default_value = "unix:///run/bosun/cri.sock")]
    listen: UnixAddress,
    /// What must outlive a reboot: records, writable layers, images.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/bosun/runtime")]
    root: PathBuf,
    /// What must not: sockets, mounts, namespaces of pods.
    #[arg(long, value_name = "FOLDER", default_value = "/run/bosun/runtime")]
    state: PathBuf,
    /// What else there is to say, in TOML: `[handlers.NAME]` with `program = "/PATH"` is an OCI runtime for pods of a RuntimeClass with
    /// that handler.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The OCI runtime; without it `runc`, else `crun`, as `PATH` has them.
    #[arg(long, value_name = "PROGRAM")]
    oci_runtime: Option<PathBuf>,
    /// The program that each pod has one of; without it `bosun-pod` beside this program, or in `PATH`.
    #[arg(long, value_name = "PROGRAM")]
    supervisor: Option<PathBuf>,
    /// systemd makes the cgroups.
    #[arg(long)]
    systemd_cgroup: bool,
    /// Configurations of pod networks.
    #[arg(long, value_name = "FOLDER", default_value = "/etc/cni/net.d")]
    cni_conf_dir: PathBuf,
    /// Network plugins; may be given more than once.
    #[arg(long, value_name = "FOLDER", default_values = ["/opt/cni/bin", "/usr/lib/cni"])]
    cni_bin_dir: Vec<PathBuf>,
    /// What network plugins answered; others use the same folder.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/cni")]
    cni_cache_dir: PathBuf,
    /// Mirrors, authorities and plain HTTP of registries: `FOLDER/HOST/hosts.toml`, as containerd has it.
    #[arg(long, value_name = "FOLDER", default_value = "/etc/containerd/certs.d")]
    hosts_dir: PathBuf,
    /// Images that are folders (`FOLDER/NAME/rootfs`) instead of those that were pulled into `ROOT/images`.
    #[arg(long, value_name = "FOLDER")]
    directory_images: Option<PathBuf>,
}

/// Serves until SIGTERM or SIGINT; pods go on running afterwards.
pub(super) fn run(args: Args) -> ExitCode {
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).with_target(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let served = runtime.context("threads").and_then(|runtime| runtime.block_on(serve(args)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("Error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let options = Options {
        listen: args.listen.socket().to_owned(),
        run: args.state,
        oci_runtime: match args.oci_runtime {
            Some(program) => program,
            None => OCI_RUNTIMES.iter().find_map(|name| in_path(name)).context("neither runc nor crun in PATH")?,
        },
        supervisor: match args.supervisor {
            Some(program) => program,
            None => {
                beside_us().or_else(|| in_path(SUPERVISOR)).context("no bosun-pod beside this program or in PATH")?
            }
        },
        handlers: args.config.as_deref().map(read_handlers).transpose()?.unwrap_or_default(),
        systemd_cgroup: args.systemd_cgroup,
        root: args.root,
    };
    if !host_linux::is_root() {
        bail!("only root can run pods");
    }
    let images: Arc<dyn Images> = match args.directory_images {
        Some(folder) => Arc::new(DirectoryImages::new(&folder)),
        None => {
            let root = options.root.join("images");
            let opened = StoreImages::open(&root, Some(args.hosts_dir));
            Arc::new(opened.with_context(|| format!("the images in {}", root.display()))?)
        }
    };
    let networks = CniNetworks::start(&args.cni_conf_dir, args.cni_bin_dir, &args.cni_cache_dir);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listen = options.listen.clone();
    let server = Server::start(options, images, networks).await?;
    info!("serving on {}", listen.display());
    let end = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping; pods go on running");
    };
    Ok(server.run(end).await?)
}

fn beside_us() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.parent()?.join(SUPERVISOR);
    beside.is_file().then_some(beside)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|f: PathBuf| f.join(Path::new(name))).find(|p| p.is_file())
}
