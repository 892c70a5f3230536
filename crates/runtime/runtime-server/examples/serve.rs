//! The server of this crate's tests: `serve FOLDER BOSUN_POD`, with images in `FOLDER/images` and, where they are there, networks
//! of `FOLDER/net.d` (plugins in `FOLDER/plugins` go before the machine's) and, of `FOLDER/runtime.toml`, handlers, `oci-runtime-only` and `snapshotter`. The environment's `OCI_RUNTIME`
//! is taken for the machine's runc. For everything else there is `bosun runtime`.

use std::path::PathBuf;
use std::sync::Arc;

use runtime_server::{CniNetworks, DirectoryImages, NoNetwork, Options, PodNetworks, RuntimeFile, Server};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(dir), Some(supervisor)) = (words.next(), words.next()) else { return Err("FOLDER BOSUN_POD".into()) };
    let config = dir.join("runtime.toml");
    let file = if config.exists() { RuntimeFile::read(&config)? } else { RuntimeFile::default() };
    let options = Options {
        root: dir.join("lib"),
        run: dir.join("run"),
        listen: dir.join("cri.sock"),
        oci_runtime: std::env::var_os("OCI_RUNTIME").map_or_else(|| "/usr/sbin/runc".into(), PathBuf::from),
        oci_runtime_only: file.oci_runtime_only.unwrap_or_default(),
        handlers: file.handlers,
        supervisor,
        cdi_spec_dirs: vec![dir.join("cdi")],
        snapshotter: file.snapshotter.unwrap_or_default(),
        systemd_cgroup: false,
    };
    let configurations = dir.join("net.d");
    let networks: Arc<dyn PodNetworks> = if configurations.exists() {
        CniNetworks::start(&configurations, vec![dir.join("plugins"), "/usr/lib/cni".into()], &dir.join("cni"))
    } else {
        Arc::new(NoNetwork)
    };
    let images = Arc::new(DirectoryImages::new(&dir.join("images")));
    let server = Server::start(options, images, networks).await?;
    println!("serving");
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(server.run(async move { term.recv().await.unwrap_or_default() }).await?)
}
