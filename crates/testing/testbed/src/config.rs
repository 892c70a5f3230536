//! The texts of the configuration files that a bed writes.

use std::path::Path;

use crate::machine;
use crate::network::Network;

/// What sends spans.
const UNTRACED: &str = r#", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp""#;

/// containerd's configuration (version 2, read by 1.6 and 1.7 alike). Of the pod network it knows only the folder of [`cni`].
pub(crate) fn containerd(dir: &Path, pause_image: &str, snapshotter: &str, is_traced: bool) -> String {
    let tracing = if is_traced { "" } else { UNTRACED };
    let dir = dir.display();
    let restrict = !machine::may_lower_oom_score();
    format!(
        r#"version = 2
root = "{dir}/root"
state = "{dir}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs"{tracing}]
[grpc]
  address = "{dir}/containerd.sock"
[ttrpc]
  address = "{dir}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_image}"
  restrict_oom_score_adj = {restrict}
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{dir}/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{dir}/runc"
        SystemdCgroup = false
"#
    )
}

/// Where bosun's own runtime keeps what outlives a reboot, below the bed's folder.
pub(crate) const OWN_ROOT: &str = "runtime";
/// And what does not.
pub(crate) const OWN_STATE: &str = "run";

/// The file of bosun's own runtime, whose supervisor is beside the `program` that serves it, or in `PATH`.
pub(crate) fn own_runtime(dir: &Path, program: &Path) -> String {
    let dir = dir.display();
    let beside = program.with_file_name("bosun-pod");
    let supervisor =
        if beside.is_absolute() { format!("supervisor = \"{}\"\n", beside.display()) } else { String::new() };
    supervisor
        + &format!(
            r#"listen = "unix://{dir}/cri.sock"
root = "{dir}/{OWN_ROOT}"
state = "{dir}/{OWN_STATE}"
cni-conf-dir = "{dir}/cni"
cni-bin-dir = ["/usr/lib/cni"]
cni-cache-dir = "{dir}/cni-cache"
hosts-dir = "{dir}/certs.d"
"#
        )
}

/// The pod network: bridge and host-local addresses for pods, portmap for host ports, loopback.
pub(crate) fn cni(dir: &Path, network: &Network) -> String {
    serde_json::json!({
        "cniVersion": "0.4.0",
        "name": network.name,
        "plugins": [
            {
                "type": "bridge", "bridge": network.bridge, "isGateway": true, "ipMasq": false, "hairpinMode": true,
                "ipam": {
                    "type": "host-local", "dataDir": dir.join("ipam"), "routes": [{"dst": "0.0.0.0/0"}],
                    "ranges": [[{"subnet": network.subnet(), "gateway": network.gateway(), "rangeEnd": network.last_pod_address()}]],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
    .to_string()
}

/// docker-registry's configuration: files in `dir`, loopback only, optionally with a password.
pub(crate) fn registry(dir: &Path, port: u16, htpasswd: Option<&Path>) -> String {
    let dir = dir.display();
    let auth = htpasswd
        .map_or(String::new(), |file| format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", file.display()));
    format!(
        "version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: {dir}/store\n  delete:\n    enabled: true\n\
         http:\n  addr: 127.0.0.1:{port}\n  secret: test\n{auth}"
    )
}

/// Tells containerd where a registry host really listens.
pub(crate) fn mirror(host: &str, port: u16) -> String {
    format!(
        "server = \"http://127.0.0.1:{port}\"\n[host.\"http://127.0.0.1:{port}\"]\n  capabilities = [\"pull\", \"resolve\"]\n# stands in for {host}\n"
    )
}
