//! The command lines of the control plane.

use std::path::Path;

/// How a cluster is made.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// For how many seconds from now certificates that the cluster signs are good. They begin five minutes earlier.
    pub signing_seconds: u32,
    /// Runs the controller that watches over nodes (conditions, taints, eviction).
    pub node_lifecycle: bool,
    /// Further flags of the API server.
    pub apiserver_flags: Vec<String>,
    /// Called with one line per step.
    pub say: fn(&str),
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let signing_seconds = 365 * 24 * 3600;
        ClusterOptions { signing_seconds, node_lifecycle: true, apiserver_flags: Vec::new(), say: |_| {} }
    }
}

/// Certificates begin so long before they are signed.
const BACKDATED_SECONDS: u32 = 300;

pub(super) fn etcd(dir: &Path, (clients, peers): (u16, u16)) -> Vec<String> {
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    vec![
        format!("--data-dir={}/etcd", dir.display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
    ]
}

/// Every flag exists from 1.20 on. `minor` switches on what was not yet the default then.
pub(super) fn apiserver(dir: &Path, address: &str, etcd: u16, minor: u32) -> Vec<String> {
    let pki = dir.join("pki");
    let pki = pki.display();
    // The kubernetes service gets the first address of its range: the one that the API server listens on.
    let range = service_range(address);
    let mut flags = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--bind-address={address}"),
        format!("--advertise-address={address}"),
        "--secure-port=443".to_owned(),
        format!("--service-cluster-ip-range={range}"),
        format!("--client-ca-file={pki}/ca.crt"),
        format!("--tls-cert-file={pki}/kube-apiserver.crt"),
        format!("--tls-private-key-file={pki}/kube-apiserver.key"),
        format!("--kubelet-certificate-authority={pki}/ca.crt"),
        format!("--kubelet-client-certificate={pki}/kube-apiserver-kubelet-client.crt"),
        format!("--kubelet-client-key={pki}/kube-apiserver-kubelet-client.key"),
        "--kubelet-preferred-address-types=InternalIP,Hostname".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--enable-bootstrap-token-auth=true".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--service-account-key-file={pki}/sa.pub"),
        format!("--service-account-signing-key-file={pki}/sa.key"),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--audit-policy-file={}/audit-policy.yaml", dir.display()),
        format!("--audit-log-path={}/audit.log", dir.display()),
        // A stopped server is to be gone at once.
        "--shutdown-delay-duration=0s".to_owned(),
    ];
    if minor == 20 {
        // Pods of later versions carry a projected token, and can be given ephemeral containers; here both are too new to be
        // the default.
        flags.push("--feature-gates=BoundServiceAccountTokenVolume=true,EphemeralContainers=true".to_owned());
    }
    flags
}

pub(super) fn controllers(dir: &Path, kubeconfig: &Path, options: &ClusterOptions, minor: u32) -> Vec<String> {
    let pki = dir.join("pki");
    let pki = pki.display();
    let mut wanted = vec![
        "csrsigning",
        "csrapproving",
        "csrcleaner",
        "serviceaccount",
        "serviceaccount-token",
        "root-ca-cert-publisher",
        "namespace",
        "garbagecollector",
        "podgc",
    ];
    if options.node_lifecycle {
        wanted.push("nodelifecycle");
    }
    // Until 1.21 the signer takes from a lifetime what it dates back.
    let lifetime = options.signing_seconds + if minor < 22 { BACKDATED_SECONDS } else { 0 };
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        format!("--controllers={}", wanted.join(",")),
        format!("--cluster-signing-cert-file={pki}/ca.crt"),
        format!("--cluster-signing-key-file={pki}/ca.key"),
        format!("--cluster-signing-duration={lifetime}s"),
        format!("--root-ca-file={pki}/ca.crt"),
        format!("--service-account-private-key-file={pki}/sa.key"),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    if minor == 20 {
        flags.push("--port=0".to_owned());
        flags.push("--feature-gates=BoundServiceAccountTokenVolume=true".to_owned());
    }
    flags
}

/// The sixteen addresses whose second one is `address`: the first is the network's own.
fn service_range(address: &str) -> String {
    let (network, host) = address.rsplit_once('.').unwrap_or((address, "1"));
    let base = host.parse::<u8>().unwrap_or(1) & 0xf0;
    format!("{network}.{base}/28")
}
