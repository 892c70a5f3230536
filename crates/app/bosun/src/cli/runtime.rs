//! `bosun runtime`: a container runtime of our own behind the CRI.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use model::unix_address::UnixAddress;
use runtime_server::{RuntimeFile, Snapshotter};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use crate::own_runtime::OwnRuntime;

/// What the runtime is started with. A flag goes before what the file says.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where it takes calls. Only root may open the socket [default: unix:///run/bosun/cri.sock].
    #[arg(long, value_name = "unix:///PATH", value_parser = UnixAddress::parse)]
    listen: Option<UnixAddress>,
    /// What must outlive a reboot: records, writable layers, images [default: /var/lib/bosun/runtime].
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
    /// What must not: sockets, mounts, namespaces of pods [default: /run/bosun/runtime].
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// All of this in TOML, by the names of these flags: `listen = "unix:///PATH"`, `cni-bin-dir = ["/PATH"]`. And, in
    /// `[handlers.NAME]` with `program = "/PATH"`, OCI runtimes for pods of a RuntimeClass with that handler.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The OCI runtime; without it `runc`, else `crun`, as `PATH` has them.
    #[arg(long, value_name = "PROGRAM")]
    oci_runtime: Option<PathBuf>,
    /// The OCI runtime starts all containers and commands. Else supervisors start plain ones themselves, in a fraction of the time, where the OCI
    /// runtime is runc or crun.
    #[arg(long)]
    oci_runtime_only: bool,
    /// How containers get the files of their images: `overlayfs` shows their layers (a kernel without it copies them), `native` copies
    /// [default: overlayfs].
    #[arg(long, value_name = "NAME")]
    snapshotter: Option<Snapshotter>,
    /// The program that each pod has one of; without it `bosun-pod` beside this program, or in `PATH`.
    #[arg(long, value_name = "PROGRAM")]
    supervisor: Option<PathBuf>,
    /// systemd makes the cgroups.
    #[arg(long)]
    systemd_cgroup: bool,
    /// Configurations of pod networks [default: /etc/cni/net.d].
    #[arg(long, value_name = "FOLDER")]
    cni_conf_dir: Option<PathBuf>,
    /// Network plugins; may be given more than once [default: /opt/cni/bin, /usr/lib/cni].
    #[arg(long, value_name = "FOLDER")]
    cni_bin_dir: Vec<PathBuf>,
    /// What network plugins answered; others use the same folder [default: /var/lib/cni].
    #[arg(long, value_name = "FOLDER")]
    cni_cache_dir: Option<PathBuf>,
    /// Files of the Container Device Interface; may be given more than once, and a later folder outdoes those before it [default:
    /// /etc/cdi, /var/run/cdi].
    #[arg(long, value_name = "FOLDER")]
    cdi_spec_dir: Vec<PathBuf>,
    /// Mirrors, authorities and plain HTTP of registries: `FOLDER/HOST/hosts.toml`, as containerd has it [default:
    /// /etc/containerd/certs.d].
    #[arg(long, value_name = "FOLDER")]
    hosts_dir: Option<PathBuf>,
    /// Images that are folders (`FOLDER/NAME/rootfs`) instead of those that were pulled into `ROOT/images`.
    #[arg(long, value_name = "FOLDER")]
    directory_images: Option<PathBuf>,
}

/// How long work that waits for a disk may go on when the server has ended.
const AT_THE_END: Duration = Duration::from_secs(2);

impl Args {
    fn over(&self, file: RuntimeFile) -> RuntimeFile {
        let given = |flag: &Option<PathBuf>, file: Option<PathBuf>| flag.clone().or(file);
        let all =
            |flags: &Vec<PathBuf>, file: Option<Vec<PathBuf>>| Some(flags.clone()).filter(|f| !f.is_empty()).or(file);
        RuntimeFile {
            listen: self.listen.as_ref().map(|address| address.socket().to_owned()).or(file.listen),
            root: given(&self.root, file.root),
            state: given(&self.state, file.state),
            oci_runtime: given(&self.oci_runtime, file.oci_runtime),
            oci_runtime_only: self.oci_runtime_only.then_some(true).or(file.oci_runtime_only),
            snapshotter: self.snapshotter.or(file.snapshotter),
            supervisor: given(&self.supervisor, file.supervisor),
            cni_conf_dir: given(&self.cni_conf_dir, file.cni_conf_dir),
            cni_bin_dir: all(&self.cni_bin_dir, file.cni_bin_dir),
            cni_cache_dir: given(&self.cni_cache_dir, file.cni_cache_dir),
            cdi_spec_dir: all(&self.cdi_spec_dir, file.cdi_spec_dir),
            hosts_dir: given(&self.hosts_dir, file.hosts_dir),
            handlers: file.handlers,
        }
    }
}

/// Serves until SIGTERM or SIGINT; pods go on running afterwards.
pub(super) fn run(args: &Args) -> ExitCode {
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).with_target(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let served = runtime.context("threads").and_then(|runtime| {
        let served = runtime.block_on(serve(args));
        // What still waits for a disk ends with this process.
        runtime.shutdown_timeout(AT_THE_END);
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("Error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(RuntimeFile::read).transpose()?.unwrap_or_default();
    let own = OwnRuntime::of(args.over(file), args.systemd_cgroup)?;
    let own = own.with_directory_images(args.directory_images.clone());
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = own.server().await?;
    info!("serving on {}", own.socket().display());
    let end = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping; pods go on running");
    };
    Ok(server.run(end).await?)
}
