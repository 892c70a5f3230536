use std::fs;
use std::os::unix::fs::PermissionsExt;

use fake_api::Authority;
use serde_json::json;
use tempfile::TempDir;

use super::{Decision, client_certificate, decide, read_bootstrap, write_kubeconfig};
use crate::kubeconfig;

#[test]
fn a_bootstrap_leaves_a_kubeconfig_that_waits_for_its_certificate() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new();
    fs::write(dir.path().join("ca.crt"), &authority.pem).unwrap();
    let bootstrap = dir.path().join("bootstrap.conf");
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "b",
        "clusters": [{ "name": "x", "cluster": { "server": "https://10.0.0.1:6443", "certificate-authority": "ca.crt" } }],
        "contexts": [{ "name": "b", "context": { "cluster": "x", "user": "t" } }],
        "users": [{ "name": "t", "user": { "token": "abcdef.0123456789abcdef" } }],
    });
    fs::write(&bootstrap, document.to_string()).unwrap();
    let kubeconfig = dir.path().join("etc/kubelet.conf");
    let pki = dir.path().join("pki");
    fs::create_dir(&pki).unwrap();
    let now = "2026-06-01T00:00:00Z".parse().unwrap();

    assert_eq!(decide(&kubeconfig, None, now), Decision::Plain);
    assert!(matches!(decide(&kubeconfig, Some(&bootstrap), now), Decision::Bootstrap { .. }), "there is no kubeconfig");

    write_kubeconfig(&kubeconfig, &read_bootstrap(&bootstrap).unwrap(), &pki).unwrap();
    assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&kubeconfig).unwrap();
    for word in
        ["default-cluster", "default-auth", "default-context", "kubelet-client-current.pem", "https://10.0.0.1:6443"]
    {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    assert!(!text.contains("abcdef.0123"), "the token stays behind");
    assert!(matches!(decide(&kubeconfig, Some(&bootstrap), now), Decision::Bootstrap { .. }), "no certificate yet");

    let node = authority.client("n1", (2026, 2027));
    fs::write(client_certificate(&pki), format!("{}{}", node.certificate, node.key)).unwrap();
    assert_eq!(decide(&kubeconfig, Some(&bootstrap), now), Decision::UseExisting);
    assert!(kubeconfig::read_at(&kubeconfig, Some(now)).unwrap().identity.is_some());

    let later = "2027-06-01T00:00:00Z".parse().unwrap();
    assert!(
        matches!(decide(&kubeconfig, Some(&bootstrap), later), Decision::Bootstrap { .. }),
        "the certificate is over"
    );
    let clock_behind = "2000-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(decide(&kubeconfig, Some(&bootstrap), clock_behind), Decision::UseExisting);
    assert_eq!(fs::read_dir(kubeconfig.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}
