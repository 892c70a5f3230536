//! From the text of a kubeconfig to [`Kubeconfig`], with every mistake on the way.

use std::path::Path;

use hyper::Uri;
use jiff::Timestamp;
use model::k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::ServerName;

use super::contents::{Auth, Kubeconfig, Trust};
use super::exec;
use super::fields::{Field, name};
use super::problem::Problem;
use crate::pem::{self, Identity, PemError};

/// Larger files are no kubeconfigs, certificates or tokens.
const MAX_FILE: u64 = 4 << 20;

type Problems = Vec<Problem>;

/// Reads a kubeconfig; certificates must be valid now.
///
/// # Errors
/// All mistakes found in it and in the files it names. Nothing is written.
pub fn read(path: &Path) -> Result<Kubeconfig, Vec<Problem>> {
    read_at(path, Some(Timestamp::now()))
}

/// As [`read`] at a given time; `None`: it does not matter when the client's certificate is valid.
///
/// # Errors
/// As [`read`].
pub fn read_at(file: &Path, now: Option<Timestamp>) -> Result<Kubeconfig, Vec<Problem>> {
    let document = document(file).map_err(|problem| vec![*problem])?;
    let root = Field::root(file, &document);
    let mut problems = Vec::new();
    for (key, wanted) in [("apiVersion", "v1"), ("kind", "Config")] {
        if let Some(found) = root.text(key, &mut problems).filter(|f| !f.is_empty() && f != wanted) {
            problems.push(root.child(key).problem("is not a kubeconfig's").value(found).allowed(wanted));
        }
    }
    let Some((cluster, user)) = current(&root, &mut problems) else { return Err(problems) };
    let read = whole(&cluster, user.as_ref(), now, &mut problems);
    match read {
        Some(kubeconfig) if problems.is_empty() => Ok(kubeconfig),
        _ => Err(problems),
    }
}

fn document(file: &Path) -> Result<Value, Box<Problem>> {
    let refused = |reason: String| Box::new(Problem::new(file, "", reason));
    let bytes = contents(file).map_err(refused)?;
    let text = String::from_utf8(bytes).map_err(|_| refused("is not UTF-8 text".to_owned()))?;
    if text.trim().is_empty() {
        return Err(refused("is empty".to_owned()));
    }
    let broken = |e: serde_saphyr::Error| {
        // The first line says what and where; the excerpt after it may hold secrets.
        let text = e.without_snippet().to_string();
        refused(format!("is not YAML: {}", text.lines().next().unwrap_or_default()))
    };
    let value: Value = serde_saphyr::from_str(&text).map_err(broken)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(refused(format!("is {}, not a mapping", name(&value))))
}

/// Contents of a file, or why there are none.
fn contents(file: &Path) -> Result<Vec<u8>, String> {
    let facts = std::fs::metadata(file).map_err(|e| format!("cannot be read: {e}"))?;
    if facts.is_dir() {
        return Err("is a directory".to_owned());
    }
    if facts.len() > MAX_FILE {
        return Err(format!("is larger than {MAX_FILE} bytes"));
    }
    std::fs::read(file).map_err(|e| format!("cannot be read: {e}"))
}

/// Cluster and user of the current context.
fn current<'a>(root: &Field<'a>, problems: &mut Problems) -> Option<(Field<'a>, Option<Field<'a>>)> {
    let Some(wanted) = root.text("current-context", problems).filter(|c| !c.is_empty()) else {
        if problems.iter().all(|p| p.path != "current-context") {
            problems.push(root.missing("current-context"));
        }
        return None;
    };
    let context = named(root, "contexts", "context", &wanted, "current-context", problems)?;
    let at = context.path.clone();
    let cluster = match context.text("cluster", problems).filter(|c| !c.is_empty()) {
        Some(cluster) => named(root, "clusters", "cluster", &cluster, &format!("{at}.cluster"), problems),
        None => {
            problems.push(context.missing("cluster"));
            None
        }
    };
    let before = problems.len();
    let user = context.text("user", problems).filter(|u| !u.is_empty());
    let user = user.and_then(|user| named(root, "users", "user", &user, &format!("{at}.user"), problems));
    (problems.len() == before).then_some((cluster?, user))
}

/// The element of a list of that name; `from` is the key that refers to it.
fn named<'a>(
    root: &Field<'a>,
    list: &str,
    inner: &str,
    wanted: &str,
    from: &str,
    problems: &mut Problems,
) -> Option<Field<'a>> {
    let before = problems.len();
    let elements = root.child(list).elements(problems);
    let mut known = Vec::new();
    for element in &elements {
        if !element.value.is_object() {
            problems.push(element.problem(format!("is {}, not a mapping", name(element.value))));
            continue;
        }
        let Some(called) = element.text("name", problems) else {
            problems.push(element.missing("name"));
            continue;
        };
        if called == wanted {
            let found = element.child(inner);
            if found.value.is_object() {
                return Some(found);
            }
            problems.push(found.problem(if found.value.is_null() { "is missing" } else { "is not a mapping" }));
            return None;
        }
        known.push(called);
    }
    if problems.len() > before {
        // The list itself is the mistake.
        return None;
    }
    let reason = format!("names no element of {list}");
    let mut problem = Problem::new(root.file, from, reason).value(wanted);
    if !known.is_empty() {
        problem = problem.allowed(&known.join(", "));
    }
    problems.push(problem);
    None
}

fn whole(
    cluster: &Field<'_>,
    user: Option<&Field<'_>>,
    now: Option<Timestamp>,
    problems: &mut Problems,
) -> Option<Kubeconfig> {
    let trust = trust(cluster, problems);
    let server = server(cluster, &trust, problems);
    let server_name = cluster.text("tls-server-name", problems).filter(|n| !n.is_empty());
    if let Some(name) = &server_name
        && ServerName::try_from(name.as_str()).is_err()
    {
        problems.push(cluster.child("tls-server-name").problem("is not a host name").value(name.as_str()));
    }
    let proxy = cluster.text("proxy-url", problems).filter(|p| !p.is_empty());
    let proxy = proxy.and_then(|text| proxy_of(&cluster.child("proxy-url"), &text, problems));
    let identity = user.and_then(|user| identity(user, now, problems));
    let auth = user.map_or(Auth::None, |user| auth(user, cluster, problems));
    Some(Kubeconfig { server: server?, server_name, trust, identity, auth, proxy })
}

fn server(cluster: &Field<'_>, trust: &Trust, problems: &mut Problems) -> Option<Uri> {
    let Some(text) = cluster.text("server", problems).filter(|s| !s.is_empty()) else {
        if problems.iter().all(|p| !p.path.ends_with(".server")) {
            problems.push(cluster.missing("server"));
        }
        return None;
    };
    let at = cluster.child("server");
    // Without a scheme, as the generic client: TLS when the cluster says anything about it.
    let scheme = if matches!(trust, Trust::System) { "http" } else { "https" };
    let full = if text.contains("://") { text.clone() } else { format!("{scheme}://{text}") };
    let problem = match full.parse::<Uri>() {
        Err(e) => at.problem(format!("is not a URL: {e}")),
        Ok(uri) if !matches!(uri.scheme_str(), Some("http" | "https")) => {
            at.problem("has an unknown scheme").allowed("https, http")
        }
        Ok(uri) if uri.host().is_none_or(str::is_empty) => at.problem("names no host"),
        Ok(uri) if uri.authority().is_some_and(|a| a.as_str().contains('@')) => {
            problems.push(at.problem("holds a name and password, which belong to users[].user"));
            return None;
        }
        Ok(uri) if uri.query().is_some() => at.problem("has a query"),
        Ok(uri) if has_bad_port(&uri) => at.problem("has a port that is none").allowed("1 to 65535"),
        Ok(uri) => return Some(uri),
    };
    problems.push(problem.value(text));
    None
}

fn has_bad_port(uri: &Uri) -> bool {
    let authority = uri.authority().map(|a| a.as_str()).unwrap_or_default();
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_host.contains(':') && uri.port_u16().is_none_or(|port| port == 0)
}

fn proxy_of(at: &Field<'_>, text: &str, problems: &mut Problems) -> Option<Uri> {
    let problem = match text.parse::<Uri>() {
        Err(e) => at.problem(format!("is not a URL: {e}")),
        Ok(uri) if uri.scheme_str() != Some("http") => at.problem("has a scheme that is not spoken").allowed("http"),
        Ok(uri) if uri.host().is_none_or(str::is_empty) => at.problem("names no host"),
        Ok(uri) => return Some(uri),
    };
    problems.push(problem);
    None
}

fn trust(cluster: &Field<'_>, problems: &mut Problems) -> Trust {
    let anyone = cluster.flag("insecure-skip-tls-verify", problems);
    let Some((pem, at)) = data_or_file(cluster, "certificate-authority", problems) else {
        return if anyone { Trust::Anyone } else { Trust::System };
    };
    if anyone {
        let at = cluster.child("insecure-skip-tls-verify");
        problems.push(at.problem("contradicts certificate-authority: either servers are verified or not"));
    }
    if let Err(error) = pem::authorities(&pem) {
        problems.push(at.because(&error));
    }
    Trust::Authorities(pem)
}

/// Where a PEM text came from.
struct Origin {
    problem: Problem,
}

impl Origin {
    fn because(&self, error: &PemError) -> Problem {
        let out_of_date = matches!(error, PemError::Expired(_) | PemError::NotYetValid(_));
        Problem { reason: error.to_string(), out_of_date, ..self.problem.clone() }
    }
}

/// `<key>-data` (base64) if it is there, else the file named by `<key>`.
fn data_or_file(field: &Field<'_>, key: &str, problems: &mut Problems) -> Option<(Vec<u8>, Origin)> {
    let data_key = format!("{key}-data");
    if let Some(text) = field.text(&data_key, problems).filter(|t| !t.is_empty()) {
        let at = field.child(&data_key);
        let Ok(ByteString(bytes)) = serde_json::from_value(Value::String(text.split_whitespace().collect())) else {
            problems.push(at.problem("is not base64"));
            return None;
        };
        return Some((bytes, Origin { problem: at.problem("") }));
    }
    let text = field.text(key, problems).filter(|t| !t.is_empty())?;
    let at = field.child(key);
    let path = field.beside(&text);
    let problem = at.problem("").value(path.display().to_string());
    match contents(&path) {
        Ok(bytes) => Some((bytes, Origin { problem })),
        Err(reason) => {
            problems.push(Problem { reason, ..problem });
            None
        }
    }
}

fn identity(user: &Field<'_>, now: Option<Timestamp>, problems: &mut Problems) -> Option<Identity> {
    let before = problems.len();
    let certificate = data_or_file(user, "client-certificate", problems);
    let key = data_or_file(user, "client-key", problems);
    let whole = problems.len() == before;
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(_), None) if whole => {
            problems.push(user.missing("client-key"));
            return None;
        }
        (None, Some(_)) if whole => {
            problems.push(user.missing("client-certificate"));
            return None;
        }
        _ => return None,
    };
    if let Err(error) = pem::certificates(&certificate.0) {
        problems.push(certificate.1.because(&error));
    }
    if let Err(error) = pem::check_key(&key.0) {
        problems.push(key.1.because(&error));
    }
    if problems.len() > before {
        return None;
    }
    let mut identity = Identity::from_pem(&certificate.0, &key.0).map_err(|e| problems.push(key.1.because(&e))).ok()?;
    let file = |key| user.text(key, &mut Problems::default()).filter(|t| !t.is_empty()).map(|t| user.beside(&t));
    let inline = !user.child("client-certificate-data").value.is_null();
    identity.files = file("client-certificate").zip(file("client-key")).filter(|_| !inline);
    if let Some(error) = now.and_then(|now| identity.valid_at(now).err()) {
        problems.push(certificate.1.because(&error));
    }
    Some(identity)
}

fn auth(user: &Field<'_>, cluster: &Field<'_>, problems: &mut Problems) -> Auth {
    if !user.child("auth-provider").value.is_null() {
        let problem = user.child("auth-provider").problem("is no longer supported by Kubernetes");
        problems.push(problem.allowed("exec"));
    }
    for key in ["as", "as-uid", "as-groups", "as-user-extra"] {
        let value = user.child(key).value;
        if !value.is_null() && value.as_array().is_none_or(|a| !a.is_empty()) {
            problems.push(user.child(key).problem("a node acts as nobody but itself"));
        }
    }
    let exec = user.child("exec");
    let token = token(user, problems);
    let name = user.text("username", problems).filter(|n| !n.is_empty());
    let password = user.text("password", problems).unwrap_or_default();
    let exec = (!exec.value.is_null()).then(|| exec::read(&exec, told_cluster(cluster), problems)).flatten();
    let several = [exec.is_some(), token.is_some(), name.is_some()].into_iter().filter(|is| *is).count() > 1;
    if several {
        problems.push(user.problem("names more than one of token, username and exec"));
    }
    match (exec, token, name) {
        (Some(plugin), _, _) => Auth::Exec(Box::new(plugin)),
        (None, Some(auth), _) => auth,
        (None, None, Some(name)) => Auth::Basic(name, password),
        (None, None, None) => Auth::None,
    }
}

/// `tokenFile` goes before `token`, as in the generic client.
fn token(user: &Field<'_>, problems: &mut Problems) -> Option<Auth> {
    let sendable = |token: &str| token.bytes().all(|b| (0x21..0x7f).contains(&b));
    let fixed = user.text("token", problems).filter(|t| !t.is_empty());
    if let Some(file) = user.text("tokenFile", problems).filter(|t| !t.is_empty()) {
        let path = user.beside(&file);
        let found = contents(&path).and_then(|bytes| match String::from_utf8_lossy(&bytes).trim() {
            "" => Err("is empty".to_owned()),
            token if !sendable(token) => Err("holds something that is not a token".to_owned()),
            _ => Ok(()),
        });
        if let Err(reason) = found {
            problems.push(user.child("tokenFile").problem(reason).value(path.display().to_string()));
        }
        return Some(Auth::TokenFile(path));
    }
    let fixed = fixed?;
    if !sendable(&fixed) {
        problems.push(user.child("token").problem("holds characters that no token has"));
    }
    Some(Auth::Token(fixed))
}

/// The cluster as an exec plugin is told of it.
fn told_cluster(cluster: &Field<'_>) -> Value {
    let mut told = json!({});
    for key in ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"] {
        if let Some(value) = cluster.value.get(key) {
            told[key] = value.clone();
        }
    }
    let authority = cluster.value.get("certificate-authority").and_then(Value::as_str).filter(|f| !f.is_empty());
    if told.get("certificate-authority-data").is_none()
        && let Some(Ok(pem)) = authority.map(|file| contents(&cluster.beside(file)))
    {
        told["certificate-authority-data"] = serde_json::to_value(ByteString(pem)).unwrap_or_default();
    }
    let extensions = cluster.value.get("extensions").and_then(Value::as_array).into_iter().flatten();
    let config =
        extensions.filter(|e| e["name"] == "client.authentication.k8s.io/exec").map(|e| &e["extension"]).next();
    if let Some(config) = config {
        told["config"] = config.clone();
    }
    told
}
