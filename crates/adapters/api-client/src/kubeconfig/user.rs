//! An element of `users`: what the client shows of itself.

use jiff::Timestamp;

use super::contents::Auth;
use super::fields::Field;
use super::files::{contents, data_or_file};
use super::problem::Problem;
use super::{cluster, exec};
use crate::pem::{self, Identity};

type Problems = Vec<Problem>;

pub(super) fn identity(user: &Field<'_>, now: Option<Timestamp>, problems: &mut Problems) -> Option<Identity> {
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

pub(super) fn auth(user: &Field<'_>, of: &Field<'_>, problems: &mut Problems) -> Auth {
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
    let exec = (!exec.value.is_null()).then(|| exec::read(&exec, cluster::for_exec(of), problems)).flatten();
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
