//! TLS: what is spoken, what is shown, what is asked of clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use contract::board::ValueReader;
use contract::certificates::{CertificateView, KeyPair};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ProtocolVersion, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};

use super::client_ca::ClientCa;
use super::error::ServeError;
use super::settings::Tls;

#[cfg(test)]
mod tests;

/// Our side of all handshakes.
pub(super) struct ServerTls {
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    serving: Arc<Serving>,
    ca: Option<Arc<ClientCa>>,
    /// For the authorities of a generation.
    config: ArcSwap<(u64, Arc<ServerConfig>)>,
}

impl ServerTls {
    pub(super) fn new(
        settings: &Tls,
        view: ValueReader<CertificateView>,
        ca: Option<Arc<ClientCa>>,
    ) -> Result<Self, ServeError> {
        let (provider, versions) = spoken(settings)?;
        let serving = Arc::new(Serving::new(view));
        let (generation, hints) = asked(ca.as_deref());
        let config = config(&provider, &versions, &serving, hints)?;
        Ok(Self { provider, versions, serving, ca, config: ArcSwap::from_pointee((generation, config)) })
    }

    /// How the next connection is greeted.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let generation = self.ca.as_ref().map_or(0, |ca| ca.current().generation);
        let known = self.config.load();
        if known.0 != generation {
            let (generation, hints) = asked(self.ca.as_deref());
            match config(&self.provider, &self.versions, &self.serving, hints) {
                Ok(config) => {
                    self.config.store(Arc::new((generation, config.clone())));
                    return TlsAcceptor::from(config);
                }
                Err(e) => tracing::warn!(error = %e, "names of client authorities stay as they were"),
            }
        }
        TlsAcceptor::from(known.1.clone())
    }
}

/// Generation of the authorities and their names; `None`: clients are not asked for certificates.
fn asked(ca: Option<&ClientCa>) -> (u64, Option<Vec<DistinguishedName>>) {
    match ca.map(ClientCa::current) {
        None => (0, None),
        Some(bundle) => (bundle.generation, Some(bundle.hints())),
    }
}

fn config(
    provider: &Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    serving: &Arc<Serving>,
    hints: Option<Vec<DistinguishedName>>,
) -> Result<Arc<ServerConfig>, ServeError> {
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|e| ServeError::Tls(e.to_string()))?;
    let builder = match hints {
        None => builder.with_no_client_auth(),
        Some(hints) => builder.with_client_cert_verifier(Arc::new(Requested { hints, provider: provider.clone() })),
    };
    let mut config = builder.with_cert_resolver(serving.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions of strangers are not worth remembering: each may hold a chain of certificates.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Names of cipher suites as the configuration has them, old ones of Go included, and the library's.
const OLD_NAMES: &[(&str, &str)] = &[
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("TLS_AES_128_GCM_SHA256", "TLS13_AES_128_GCM_SHA256"),
    ("TLS_AES_256_GCM_SHA384", "TLS13_AES_256_GCM_SHA384"),
    ("TLS_CHACHA20_POLY1305_SHA256", "TLS13_CHACHA20_POLY1305_SHA256"),
];

type Spoken = (Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>);

/// Suites, groups and versions.
fn spoken(settings: &Tls) -> Result<Spoken, ServeError> {
    let mut provider = ring::default_provider();
    let mut versions: Vec<&'static SupportedProtocolVersion> = vec![&TLS13, &TLS12];
    match settings.min_version.as_str() {
        "" | "VersionTLS12" => {}
        "VersionTLS13" => versions.truncate(1),
        old @ ("VersionTLS10" | "VersionTLS11") => {
            tracing::warn!(min_version = old, "tlsMinVersion is older than what can be spoken, TLS 1.2 is the oldest");
        }
        other => return Err(ServeError::Tls(format!("tlsMinVersion {other:?} is not known"))),
    }
    if !settings.cipher_suites.is_empty() {
        let name = |n: &str| OLD_NAMES.iter().find(|(old, _)| *old == n).map_or(n, |(_, new)| new).to_owned();
        let wanted: Vec<String> = settings.cipher_suites.iter().map(|n| name(n)).collect();
        let named = |s: &tokio_rustls::rustls::SupportedCipherSuite| format!("{:?}", s.suite());
        let known: Vec<String> = provider.cipher_suites.iter().map(named).collect();
        let missing: Vec<_> =
            settings.cipher_suites.iter().zip(&wanted).filter(|(_, w)| !known.contains(w)).map(|(n, _)| n).collect();
        if !missing.is_empty() {
            tracing::warn!(suites = ?missing, "tlsCipherSuites names suites that are not spoken (only ECDHE with AEAD is)");
        }
        if missing.len() == wanted.len() {
            return Err(ServeError::Tls(format!("none of tlsCipherSuites is spoken: {missing:?}")));
        }
        // The setting holds for TLS 1.2; those of 1.3 stand always.
        provider
            .cipher_suites
            .retain(|s| s.version().version == ProtocolVersion::TLSv1_3 || wanted.contains(&named(s)));
        if !provider.cipher_suites.iter().any(|s| s.version().version == ProtocolVersion::TLSv1_2) {
            versions.retain(|v| v.version == ProtocolVersion::TLSv1_3);
        }
    }
    if !settings.curves.is_empty() {
        provider.kx_groups.retain(|g| settings.curves.contains(&i32::from(u16::from(g.name()))));
        if provider.kx_groups.is_empty() {
            return Err(ServeError::Tls(format!("none of tlsCurvePreferences is spoken: {:?}", settings.curves)));
        }
    }
    Ok((Arc::new(provider), versions))
}

/// The certificate that is shown: what stands in the view, read when it is another one.
#[derive(Debug)]
struct Serving {
    view: ValueReader<CertificateView>,
    shown: ArcSwapOption<(Arc<KeyPair>, Arc<CertifiedKey>)>,
    /// One that could not be used, so that it is complained about once.
    bad: ArcSwapOption<KeyPair>,
    began: Instant,
    /// Second of the last complaint that there is none.
    complained: AtomicU64,
}

impl Serving {
    fn new(view: ValueReader<CertificateView>) -> Self {
        Self {
            view,
            shown: ArcSwapOption::empty(),
            bad: ArcSwapOption::empty(),
            began: Instant::now(),
            complained: AtomicU64::new(0),
        }
    }

    fn key(&self) -> Option<Arc<CertifiedKey>> {
        let shown = self.shown.load();
        let Some(pair) = self.view.get().serving.clone() else {
            self.complain();
            return None;
        };
        if let Some(known) = shown.as_ref()
            && Arc::ptr_eq(&known.0, &pair)
        {
            return Some(known.1.clone());
        }
        if !self.bad.load().as_ref().is_some_and(|bad| Arc::ptr_eq(bad, &pair)) {
            match certified(&pair) {
                Ok(key) => {
                    self.shown.store(Some(Arc::new((pair, key.clone()))));
                    return Some(key);
                }
                Err(error) => {
                    tracing::warn!(error, "the new serving certificate cannot be used, the old one stays");
                    self.bad.store(Some(pair));
                }
            }
        }
        shown.as_ref().map(|known| known.1.clone())
    }

    /// At most once a minute: everybody may knock.
    fn complain(&self) {
        let now = self.began.elapsed().as_secs() + 60;
        let last = self.complained.load(Ordering::Relaxed);
        if now >= last + 60 && self.complained.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!("no serving certificate available for the kubelet");
        }
    }
}

fn certified(pair: &KeyPair) -> Result<Arc<CertifiedKey>, String> {
    let chain = ::tls::certificates(pair.certificate_pem.as_bytes()).map_err(|e| e.to_string())?;
    if chain.is_empty() {
        return Err("no certificate".to_owned());
    }
    let key = ::tls::key(pair.key_pem.as_bytes()).map_err(|e| e.to_string())?;
    let key = ring::sign::any_supported_type(&key).map_err(|e| e.to_string())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(Error::InconsistentKeys(tokio_rustls::rustls::InconsistentKeys::KeyMismatch)) => {
            Err("the key does not belong to the certificate".to_owned())
        }
        // It could not be told, as with certificates of X.509 version 1.
        _ => Ok(Arc::new(certified)),
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.key()
    }
}

/// Clients are asked for a certificate and may have none. Whether it is a good one is found out for each request, by the
/// authorities and the time of then; here they only prove that the key is theirs.
#[derive(Debug)]
struct Requested {
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Requested {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
