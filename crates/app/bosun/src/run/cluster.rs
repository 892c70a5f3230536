//! The way to the API server: which credentials there are, which are asked for, and how new ones come into use.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use anyhow::{Context, Result, bail};
use api_client::bootstrap::{self, Decision};
use api_client::{ApiClient, Identity, Kubeconfig, LateApi, Rate, kubeconfig};
use certificate_manager::{ClientSource, PemPair, ServingSource};
use contract::board::ValueReader;
use contract::certificates::CertificateView;
use jiff::Timestamp;
use node_config::{ApiAccess, Flags, KUBERNETES_VERSION, NodeConfig, ServerTls};
use ports::api::ApiServer;

/// How often a process beside the daemon looks whether that has renewed its certificate: it does so days before the old one ends.
const LOOKED_AT: Duration = Duration::from_secs(60);

/// Everything of a cluster that is no actor.
pub(super) struct Link {
    /// With the credentials of the node; answers `NotReady` until there are any.
    pub(super) api: Arc<dyn ApiServer>,
    /// With the bootstrap token.
    pub(super) bootstrap: Option<Arc<dyn ApiServer>>,
    /// Where the client certificate comes from.
    pub(super) client: ClientSource,
    connections: ApiClient,
    late: Option<LateApi>,
}

/// Reads kubeconfigs and makes clients of them; nothing is asked for yet. `None`: standalone.
///
/// # Errors
/// A kubeconfig is broken; each mistake is named. Nothing was written then.
pub(super) fn link(flags: &Flags, config: &NodeConfig) -> Result<Option<Link>> {
    let Some(path) = &flags.kubeconfig else {
        if flags.bootstrap_kubeconfig.is_some() {
            bail!("--bootstrap-kubeconfig needs --kubeconfig: the file that the bootstrap writes");
        }
        return Ok(None);
    };
    let decision = bootstrap::decide(path, flags.bootstrap_kubeconfig.as_deref(), Timestamp::now());
    match (decision, &flags.bootstrap_kubeconfig) {
        (Decision::Bootstrap { why }, Some(begin)) => {
            tracing::info!(why, "no usable kubeconfig yet: asking for a client certificate");
            begin_with(begin, path, flags, config).map(Some)
        }
        _ => {
            // A certificate that is over is no reason to leave the pods of this node alone: requests will be refused.
            let read = kubeconfig::read_at(path, None).map_err(refused)?;
            if let Some(error) = read.identity.as_ref().and_then(|i| i.valid_at(Timestamp::now()).err()) {
                tracing::warn!(kubeconfig = %path.display(), "the client certificate is of no use now: {error}");
            }
            let connections = ApiClient::new(&read, client_settings(&config.api))?;
            let client = if config.api.rotate_certificates { rotation(&read) } else { ClientSource::Off };
            Ok(Some(Link { api: Arc::new(connections.clone()), bootstrap: None, client, connections, late: None }))
        }
    }
}

/// Where the daemon keeps its credentials.
#[derive(Clone)]
pub(super) struct Credentials {
    kubeconfig: PathBuf,
    /// Link to the client certificate that the daemon has renewed, whatever the kubeconfig names; `None`: it renews none.
    renewed: Option<PathBuf>,
}

impl Credentials {
    /// `None`: standalone.
    fn of(flags: &Flags, config: &NodeConfig) -> Option<Self> {
        let renewed = config.api.rotate_certificates.then(|| bootstrap::client_certificate(&flags.cert_dir));
        Some(Credentials { kubeconfig: flags.kubeconfig.clone()?, renewed })
    }

    /// The kubeconfig, with the certificate that the daemon uses.
    fn read(&self) -> Result<Kubeconfig> {
        let mut read = kubeconfig::read_at(&self.kubeconfig, None).map_err(refused)?;
        // As in `rotation`: who shows no certificate has none renewed.
        if read.identity.is_some()
            && let Some(renewed) = self.renewed()?
        {
            read.identity = Some(renewed);
        }
        Ok(read)
    }

    /// As CertificateManager finds it: the link goes before what the kubeconfig has, and only a link does.
    fn renewed(&self) -> Result<Option<Identity>> {
        let Some(path) = self.renewed.as_deref().filter(|path| path.is_symlink()) else { return Ok(None) };
        let at = || path.display().to_string();
        let pem = std::fs::read(path).with_context(at)?;
        Identity::from_pem(&pem, &pem).map(Some).with_context(at)
    }
}

/// The way to the API server for a process beside the daemon, with the credentials that the daemon keeps. `None`: standalone.
///
/// # Errors
/// The kubeconfig or what was renewed is broken, or the daemon has not written it yet; each mistake is named.
pub(super) fn beside(flags: &Flags, config: &NodeConfig) -> Result<Option<(Credentials, ApiClient)>> {
    let Some(credentials) = Credentials::of(flags, config) else { return Ok(None) };
    let connections = ApiClient::new(&credentials.read()?, client_settings(&config.api))?;
    Ok(Some((credentials, connections)))
}

/// Uses the client certificate of the daemon, also when that has renewed it. Never ends.
pub(super) async fn follow(credentials: Credentials, connections: ApiClient, effects: Effects) {
    let mut used = None;
    loop {
        let at = credentials.clone();
        match effects.blocking(Class::HostFiles, move || at.read()).await {
            Ok(read) => renew(&mut used, read, &connections),
            Err(error) => tracing::warn!("the former credentials stay in use: {error:#}"),
        }
        tokio::time::sleep(LOOKED_AT).await;
    }
}

fn renew(used: &mut Option<(String, String)>, read: Kubeconfig, connections: &ApiClient) {
    let Some(found) = read.identity.map(|i| (i.certificate_pem, i.key_pem)) else { return };
    if used.as_ref() == Some(&found) {
        return;
    }
    match connections.set_identity(found.0.as_bytes(), found.1.as_bytes()) {
        Ok(()) => tracing::info!("the client certificate of the daemon is in use"),
        Err(error) => return tracing::warn!("the client certificate of the daemon cannot be used: {error}"),
    }
    *used = Some(found);
}

fn refused(problems: Vec<kubeconfig::Problem>) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow::anyhow!("invalid kubeconfig, {} mistake(s):\n{}", lines.len(), lines.join("\n"))
}

/// Only a certificate can be renewed by a request; tokens and plugins care for themselves.
fn rotation(read: &Kubeconfig) -> ClientSource {
    let Some(identity) = &read.identity else { return ClientSource::Off };
    let imported = identity
        .files
        .is_none()
        .then(|| PemPair { certificate: identity.certificate_pem.clone(), key: identity.key_pem.clone() });
    ClientSource::Rotate { imported, files: identity.files.clone() }
}

fn begin_with(begin: &Path, kubeconfig: &Path, flags: &Flags, config: &NodeConfig) -> Result<Link> {
    let read = bootstrap::read_bootstrap(begin).map_err(refused)?;
    bootstrap::write_kubeconfig(kubeconfig, &read, &flags.cert_dir)
        .map_err(|e| anyhow::anyhow!("{}: cannot be written: {e}", kubeconfig.display()))?;
    let token = ApiClient::new(&read, client_settings(&config.api))?;
    let node = Kubeconfig { identity: None, auth: api_client::kubeconfig::Auth::None, ..read };
    let connections = ApiClient::new(&node, client_settings(&config.api))?;
    let late = LateApi::new("no client certificate yet: its request is under way");
    let client = match config.api.rotate_certificates {
        true => ClientSource::Rotate { imported: None, files: None },
        false => ClientSource::Once,
    };
    let late_api: Arc<dyn ApiServer> = Arc::new(late.clone());
    Ok(Link { api: late_api, bootstrap: Some(Arc::new(token)), client, connections, late: Some(late) })
}

/// What this daemon calls itself to servers.
pub(super) fn user_agent() -> String {
    api_client::user_agent(KUBERNETES_VERSION, env!("CARGO_PKG_VERSION"))
}

fn client_settings(config: &ApiAccess) -> api_client::Settings {
    let rate = |per_second: u32, burst: u32| Rate { per_second: f64::from(per_second), burst };
    api_client::Settings {
        main: rate(config.kube_api_qps, config.kube_api_burst),
        events: rate(config.event_record_qps, config.event_burst),
        user_agent: user_agent(),
        http2: std::env::var_os("DISABLE_HTTP2").is_none_or(|v| v.is_empty()),
        ..api_client::Settings::default()
    }
}

/// Where the serving certificate comes from (interfaces 3.9).
pub(super) fn serving(tls: &ServerTls, hostname: &str, cluster: bool) -> ServingSource {
    let files = tls.cert_file.clone().zip(tls.private_key_file.clone());
    match files {
        files if tls.bootstrap && cluster => ServingSource::Rotate { files },
        Some((certificate, key)) => ServingSource::Files { certificate, key },
        None => ServingSource::SelfSigned { hostname: hostname.to_owned() },
    }
}

impl Link {
    /// Brings each new client certificate into use, for as long as the daemon runs. Ends when the daemon should be
    /// started anew, with the reason and the exit code.
    pub(super) async fn keep_credentials(self, certificates: ValueReader<CertificateView>) -> (String, ExitCode) {
        let mut view = certificates.subscribe();
        let mut used = None;
        loop {
            let now = view.borrow_and_update().clone();
            if let Some(pair) = now.client.as_ref().filter(|pair| used.as_ref() != Some(*pair)) {
                match self.connections.set_identity(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()) {
                    Ok(()) => {
                        tracing::info!(until = pair.not_after.0 / 1_000_000_000, "client certificate in use");
                        if let Some(late) = self.late.as_ref().filter(|late| !late.is_provided()) {
                            late.provide(Arc::new(self.connections.clone()));
                        }
                    }
                    Err(error) => tracing::error!("the new client certificate cannot be used: {error}"),
                }
                used = Some(pair.clone());
            }
            if let Some(why) = &now.must_exit {
                return (why.clone(), ExitCode::FAILURE);
            }
            if view.changed().await.is_err() {
                // The wiring holds the sender: this daemon is on its way out.
                return std::future::pending().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;

    /// Certificate and key.
    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["node".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn write_kubeconfig(path: &Path, user: &Value) {
        let cluster = json!({"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true});
        let document = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        });
        std::fs::write(path, document.to_string()).unwrap();
    }

    /// As a kubelet has it: the kubeconfig names a file that the daemon exchanges.
    #[test]
    fn a_process_beside_the_daemon_uses_the_certificate_that_the_daemon_has_renewed() {
        actor::testing::run(1, |kernel| async move {
            let dir = tempfile::tempdir().unwrap();
            let renew = || {
                let (certificate, key) = made();
                std::fs::write(dir.path().join("node.pem"), certificate + &key).unwrap();
            };
            let kubeconfig = dir.path().join("kubeconfig");
            write_kubeconfig(&kubeconfig, &json!({"client-certificate": "node.pem", "client-key": "node.pem"}));
            let mut flags = Flags::default();
            flags.kubeconfig = Some(kubeconfig);
            let unwritten = beside(&flags, &NodeConfig::default()).map(|_| ()).unwrap_err().to_string();
            assert!(unwritten.contains("node.pem"), "{unwritten}");

            renew();
            let (credentials, connections) = beside(&flags, &NodeConfig::default()).unwrap().unwrap();
            let mut exchanges = connections.exchanges();
            let following = tokio::task::spawn_local(follow(credentials, connections, kernel.effects("kubeconfig")));
            exchanges.changed().await.unwrap();
            tokio::time::sleep(3 * LOOKED_AT).await;
            assert!(!exchanges.has_changed().unwrap(), "the same certificate is no new one");
            renew();
            exchanges.changed().await.unwrap();
            // One that is half written is passed over.
            std::fs::write(dir.path().join("node.pem"), "").unwrap();
            tokio::time::sleep(3 * LOOKED_AT).await;
            assert!(!exchanges.has_changed().unwrap());
            renew();
            exchanges.changed().await.unwrap();
            following.abort();
        });
    }

    /// As an installer writes it: the certificate is in the kubeconfig, and those that follow are in the certificate folder.
    #[test]
    fn a_renewed_certificate_is_found_where_the_daemon_puts_it_whatever_the_kubeconfig_names() {
        actor::testing::run(1, |kernel| async move {
            let dir = tempfile::tempdir().unwrap();
            let mut flags = Flags::default();
            let kubeconfig = dir.path().join("kubeconfig");
            (flags.kubeconfig, flags.cert_dir) = (Some(kubeconfig.clone()), dir.path().to_owned());
            let (mut config, off) = (NodeConfig::default(), NodeConfig::default());
            config.api.rotate_certificates = true;
            let shown = |config: &NodeConfig| {
                let read = Credentials::of(&flags, config).unwrap().read()?;
                Ok::<_, anyhow::Error>(read.identity.map(|identity| identity.certificate_pem))
            };
            let (certificate, key) = made();
            let data = |pem: &str| ByteString(pem.as_bytes().to_vec());
            let inline = json!({"client-certificate-data": data(&certificate), "client-key-data": data(&key)});
            write_kubeconfig(&kubeconfig, &inline);
            let current = dir.path().join("kubelet-client-current.pem");
            std::fs::write(&current, "").unwrap();
            assert_eq!(shown(&config).unwrap(), Some(certificate.clone()), "a file there is none of the daemon's");
            std::fs::remove_file(&current).unwrap();

            let (credentials, connections) = beside(&flags, &config).unwrap().unwrap();
            let mut exchanges = connections.exchanges();
            let following = tokio::task::spawn_local(follow(credentials, connections, kernel.effects("kubeconfig")));
            exchanges.changed().await.unwrap();
            let (next, next_key) = made();
            let renewed = next + &next_key;
            std::fs::write(dir.path().join("dated.pem"), &renewed).unwrap();
            std::os::unix::fs::symlink("dated.pem", &current).unwrap();
            exchanges.changed().await.unwrap();
            following.abort();

            assert_eq!(shown(&config).unwrap(), Some(renewed));
            assert_eq!(shown(&off).unwrap(), Some(certificate), "it renews none");
            std::fs::write(dir.path().join("dated.pem"), &next_key).unwrap();
            let why = shown(&config).unwrap_err().to_string();
            assert!(why.contains("kubelet-client-current.pem"), "{why}");
            write_kubeconfig(&kubeconfig, &json!({"token": "t"}));
            assert_eq!(shown(&config).unwrap(), None, "a token is no certificate");
        });
    }
}
