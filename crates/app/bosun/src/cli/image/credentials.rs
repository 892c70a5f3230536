//! Who pulls.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use pull_credentials::{Keyring, Source, parse_config_json};
use registry::Credentials;

/// How a registry is told who asks.
#[derive(Debug, Clone, Args)]
pub(super) struct CredentialArgs {
    /// User and password. Other users of this machine can see them while it runs: --creds-stdin is better.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with_all = ["creds_stdin", "auth_file"])]
    creds: Option<String>,
    /// Read USER:PASSWORD from standard input.
    #[arg(long, conflicts_with = "auth_file")]
    creds_stdin: bool,
    /// A file as `docker login` writes it; ~/.docker/config.json if it is there.
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
}

/// Longest text of standard input that is taken for a password.
const LONGEST: u64 = 64 << 10;

impl CredentialArgs {
    /// For a repository (`r.example/team/app`); none if nothing was said.
    pub(super) fn credentials(&self, repository: &str) -> Result<Option<Credentials>> {
        if let Some(pair) = &self.creds {
            return password(pair).map(Some);
        }
        if self.creds_stdin {
            let mut text = String::new();
            io::stdin().take(LONGEST).read_to_string(&mut text).context("cannot read standard input")?;
            return password(text.trim_end_matches(['\r', '\n'])).map(Some);
        }
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker/config.json"));
        let Some(file) = self.auth_file.clone().or_else(|| home.filter(|file| file.exists())) else { return Ok(None) };
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        of_file(&text, repository).with_context(|| format!("cannot use {}", file.display()))
    }
}

fn password(pair: &str) -> Result<Credentials> {
    match pair.split_once(':') {
        Some((username, password)) if !username.is_empty() => {
            Ok(Credentials::Password { username: username.to_owned(), password: password.to_owned() })
        }
        _ => bail!("credentials are written USER:PASSWORD"),
    }
}

fn of_file(text: &[u8], repository: &str) -> Result<Option<Credentials>> {
    let mut keyring = Keyring::default();
    keyring.add(parse_config_json(text)?, &Source::Node);
    let found = keyring.lookup(repository).into_iter().next();
    Ok(found.map(|found| match found.auth.identity_token.is_empty() || !found.auth.username.is_empty() {
        true => Credentials::Password { username: found.auth.username, password: found.auth.password },
        false => Credentials::IdentityToken(found.auth.identity_token),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_they_are_written() {
        let Credentials::Password { username, password } = password("me:a:b").unwrap() else { panic!() };
        assert_eq!((username.as_str(), password.as_str()), ("me", "a:b"));
        for wrong in ["me", "", ":x"] {
            assert!(super::password(wrong).unwrap_err().to_string().contains("USER:PASSWORD"));
        }
    }

    #[test]
    fn a_file_of_docker_names_who_pulls_from_where() {
        let text = br#"{"auths":{"r.example":{"auth":"bWU6czNjcmV0"},"t.example":{"identitytoken":"t0k"}}}"#;
        let of = |repository| of_file(text, repository).unwrap();
        assert!(matches!(of("r.example/a/b"), Some(Credentials::Password { username, .. }) if username == "me"));
        assert_eq!(of("t.example/a"), Some(Credentials::IdentityToken("t0k".to_owned())));
        assert_eq!(of("docker.io/library/busybox"), None);
        of_file(b"{", "r.example/a").unwrap_err();
    }
}
