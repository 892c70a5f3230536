//! From the text of a kubeconfig to [`Kubeconfig`], with every mistake on the way.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use tokio_rustls::rustls::pki_types::ServerName;

use super::contents::{Auth, Kubeconfig};
use super::fields::{Field, name};
use super::files::contents;
use super::problem::Problem;
use super::{cluster, user};

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
    let read = assemble(&cluster, user.as_ref(), now, &mut problems);
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

/// Both elements together.
fn assemble(
    at: &Field<'_>,
    user: Option<&Field<'_>>,
    now: Option<Timestamp>,
    problems: &mut Problems,
) -> Option<Kubeconfig> {
    let trust = cluster::trust(at, problems);
    let server = cluster::server(at, &trust, problems);
    let server_name = at.text("tls-server-name", problems).filter(|n| !n.is_empty());
    if let Some(name) = &server_name
        && ServerName::try_from(name.as_str()).is_err()
    {
        problems.push(at.child("tls-server-name").problem("is not a host name").value(name.as_str()));
    }
    let proxy = at.text("proxy-url", problems).filter(|p| !p.is_empty());
    let proxy = proxy.and_then(|text| cluster::proxy(&at.child("proxy-url"), &text, problems));
    let identity = user.and_then(|of| user::identity(of, now, problems));
    let auth = user.map_or(Auth::None, |of| user::auth(of, at, problems));
    Some(Kubeconfig { server: server?, server_name, trust, identity, auth, proxy })
}
