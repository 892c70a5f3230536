//! How do I get a containerd to play with? Starts a test bed and keeps it until ctrl-c; removes kept ones.

use std::path::PathBuf;

use anyhow::bail;
use testbed::{Cluster, ClusterOptions, Options, TestBed};

/// Starts a test bed (containerd, pod network, images) and keeps it until ctrl-c.
///
/// The printed socket serves CRI; `ctr -a SOCKET -n k8s.io ...` works on it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Removes a bed that `demo --keep` left, by its folder, and whatever killed owners left behind.
    #[arg(long, value_name = "FOLDER")]
    remove: Option<PathBuf>,
    /// With a control plane, as `cargo xtask setup --cluster` brings it.
    #[arg(long)]
    cluster: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(dir) = &args.remove {
        return remove(dir);
    }
    let say = |step: &str| println!("  {step}");
    let mut bed = TestBed::start(Options { say, ..Options::default() })?;
    let options = ClusterOptions { say, ..ClusterOptions::default() };
    let cluster = args.cluster.then(|| Cluster::start(&mut bed, options)).transpose()?;
    println!("folder       {}", bed.dir().display());
    println!("socket       {}", bed.socket().display());
    println!("cgroup root  {}", bed.cgroup_root());
    println!("node ip      {}", bed.node_ip());
    if let Some(cluster) = &cluster {
        println!("api server   {} {}", cluster.server(), cluster.version());
        println!(
            "kubectl      {} --kubeconfig {}",
            cluster.kubectl_program().display(),
            cluster.admin_kubeconfig().display()
        );
        println!("node         --kubeconfig {}", cluster.node_kubeconfig(Cluster::NODE)?.display());
        println!("bootstrap    --bootstrap-kubeconfig {}", cluster.bootstrap_kubeconfig()?.display());
    }
    println!("ctrl-c removes it");
    loop {
        std::thread::park();
    }
}

fn remove(dir: &std::path::Path) -> anyhow::Result<()> {
    for swept in testbed::sweep_orphans(&std::env::temp_dir()) {
        println!("removed {} (its owner is gone)", swept.display());
    }
    match testbed::remove_bed(dir) {
        None if !dir.exists() => println!("no bed in {}", dir.display()),
        None => bail!("{} is not a test bed (no bed.json)", dir.display()),
        Some(left) if left.is_empty() => println!("removed {}", dir.display()),
        Some(left) => bail!("these could not be removed:\n  {}", left.join("\n  ")),
    }
    Ok(())
}
