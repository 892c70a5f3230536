//! Where the node serves, what, and to whom.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

use crate::config::{AuthorizationMode, NodeConfig, Server, ServerTls, TlsVersion};
use crate::error::ConfigError;
use crate::reader::{Reader, set};
use crate::tls_names::CIPHER_SUITES;

/// The node's own certificates, and where it serves.
pub(super) fn serving(r: &mut Reader<'_>, c: &mut NodeConfig) {
    set(&mut c.api.rotate_certificates, r.bool("rotateCertificates"));
    set(&mut c.server.tls.bootstrap, r.bool("serverTLSBootstrap"));
    set(&mut c.server.address, ip(r, "address"));
    set(&mut c.server.port, port(r, "port").filter(|p| *p > 0));
    tls(r, &mut c.server.tls);
    set(&mut c.healthz.bind_address, ip(r, "healthzBindAddress"));
    if let Some(port) = port(r, "healthzPort") {
        c.healthz.port = (port > 0).then_some(port);
    }
    if c.server.tls.bootstrap && !c.feature_gates.enabled("RotateKubeletServerCertificate") {
        let reason = "needs the feature gate RotateKubeletServerCertificate, which is switched off";
        r.findings.error(ConfigError::new("serverTLSBootstrap", reason).value(&Value::Bool(true)));
    }
    handlers(r, &mut c.server);
    authentication(r, &mut c.server);
    authorization(r, &mut c.server);
}

fn tls(r: &mut Reader<'_>, tls: &mut ServerTls) {
    tls.cert_file = r.some_text("tlsCertFile").map(PathBuf::from);
    tls.private_key_file = r.some_text("tlsPrivateKeyFile").map(PathBuf::from);
    for (have, lack, name, missing) in [
        (&tls.cert_file, &tls.private_key_file, "tlsCertFile", "tlsPrivateKeyFile"),
        (&tls.private_key_file, &tls.cert_file, "tlsPrivateKeyFile", "tlsCertFile"),
    ] {
        if let (Some(file), None) = (have, lack) {
            let error = ConfigError::new(name, format!("needs {missing}: a certificate and its key come as a pair"));
            r.findings.error(error.value(&Value::from(file.display().to_string())));
        }
    }
    for (i, name) in r.text_list("tlsCipherSuites").unwrap_or_default().into_iter().enumerate() {
        if !CIPHER_SUITES.contains(&name.as_str()) {
            let error = ConfigError::new(format!("tlsCipherSuites[{i}]"), "is no known cipher suite");
            r.findings
                .error(error.value(&Value::from(name)).allowed("names as IANA has them, as in TLS_AES_128_GCM_SHA256"));
            continue;
        }
        tls.cipher_suites.push(name);
    }
    tls.curve_preferences = r.int_list("tlsCurvePreferences").unwrap_or_default();
    let words = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];
    match r.word("tlsMinVersion", &words).as_deref() {
        Some("VersionTLS10") => tls.min_version = TlsVersion::Tls10,
        Some("VersionTLS11") => tls.min_version = TlsVersion::Tls11,
        Some("VersionTLS13") => tls.min_version = TlsVersion::Tls13,
        _ => {}
    }
}

fn handlers(r: &mut Reader<'_>, s: &mut Server) {
    set(&mut s.enable_server, r.bool("enableServer"));
    s.read_only_port = port(r, "readOnlyPort").filter(|p| *p > 0);
    set(&mut s.enable_debugging_handlers, r.bool("enableDebuggingHandlers"));
    set(&mut s.enable_system_log_handler, r.bool("enableSystemLogHandler"));
    set(&mut s.enable_system_log_query, r.bool("enableSystemLogQuery"));
    set(&mut s.enable_profiling_handler, r.bool("enableProfilingHandler"));
    set(&mut s.enable_debug_flags_handler, r.bool("enableDebugFlagsHandler"));
    set(&mut s.streaming_connection_idle_timeout, r.some_duration("streamingConnectionIdleTimeout"));
    if s.enable_system_log_query && !s.enable_system_log_handler {
        let error = ConfigError::new("enableSystemLogQuery", "needs enableSystemLogHandler to be true");
        r.findings.error(error.value(&Value::Bool(true)).allowed("false"));
    }
}

fn authentication(r: &mut Reader<'_>, s: &mut Server) {
    let Some(fields) = r.object("authentication") else { return };
    let a = &mut s.authentication;
    let mut outer = Reader::new("authentication", fields, r.findings);
    if let Some(fields) = outer.object("x509") {
        let mut inner = Reader::new("authentication.x509", fields, outer.findings);
        a.client_ca_file = inner.some_text("clientCAFile").map(PathBuf::from);
        inner.finish(&[]);
    }
    if let Some(fields) = outer.object("webhook") {
        let mut inner = Reader::new("authentication.webhook", fields, outer.findings);
        set(&mut a.webhook, inner.bool("enabled"));
        set(&mut a.webhook_cache_ttl, inner.some_duration("cacheTTL"));
        inner.finish(&[]);
    }
    if let Some(fields) = outer.object("anonymous") {
        let mut inner = Reader::new("authentication.anonymous", fields, outer.findings);
        set(&mut a.anonymous, inner.bool("enabled"));
        inner.finish(&[]);
    }
    outer.finish(&[]);
}

fn authorization(r: &mut Reader<'_>, s: &mut Server) {
    let Some(fields) = r.object("authorization") else { return };
    let a = &mut s.authorization;
    let mut outer = Reader::new("authorization", fields, r.findings);
    match outer.word("mode", &["AlwaysAllow", "Webhook"]).as_deref() {
        Some("AlwaysAllow") => a.mode = AuthorizationMode::AlwaysAllow,
        Some(_) => a.mode = AuthorizationMode::Webhook,
        None => {}
    }
    if let Some(fields) = outer.object("webhook") {
        let mut inner = Reader::new("authorization.webhook", fields, outer.findings);
        set(&mut a.cache_authorized_ttl, inner.some_duration("cacheAuthorizedTTL"));
        set(&mut a.cache_unauthorized_ttl, inner.some_duration("cacheUnauthorizedTTL"));
        inner.finish(&[]);
    }
    outer.finish(&[]);
}

fn ip(r: &mut Reader<'_>, name: &'static str) -> Option<IpAddr> {
    let text = r.some_text(name)?;
    let found = text.parse().ok();
    if found.is_none() {
        let error = ConfigError::new(name, "is not an IP address").value(&Value::from(text));
        r.findings.error(error.allowed("an address such as 0.0.0.0, 127.0.0.1 or ::"));
    }
    found
}

fn port(r: &mut Reader<'_>, name: &'static str) -> Option<u16> {
    r.int(name, 0, 65535).and_then(|n| u16::try_from(n).ok())
}
