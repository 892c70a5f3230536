//! `WWW-Authenticate`: how a registry wants to be asked (RFC 9110, and Docker's token specification).

use std::collections::BTreeMap;

/// How a host wants to know who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token from another server.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// The best challenge of all header lines: a token before a password.
pub(crate) fn best<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<Challenge> = lines.into_iter().flat_map(parse).collect();
    let bearer = all.iter().position(|c| matches!(c, Challenge::Bearer { .. }));
    all.into_iter().nth(bearer.unwrap_or(0))
}

/// All challenges of a line that are known here.
fn parse(line: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((scheme, after)) = token(rest) {
        let mut fields = BTreeMap::new();
        rest = after;
        while let Some((name, value, after)) = parameter(rest) {
            fields.insert(name.to_ascii_lowercase(), value);
            rest = after;
        }
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => found.push(Challenge::Basic),
            "bearer" => {
                if let Some(realm) = fields.remove("realm") {
                    let (service, scope) = (fields.remove("service"), fields.remove("scope"));
                    found.push(Challenge::Bearer { realm, service, scope });
                }
            }
            _ => {}
        }
    }
    found
}

fn token(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~+/!#$%&'*^`|".contains(c))).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// `name=value` or `name="value"`, with what follows.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = token(text)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let (value, rest) = token(rest)?;
        return Some((name, value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((name, value, &quoted[at + 1..])),
            '\\' => value.extend(characters.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    None
}

/// What a token is asked for: only to pull, whatever the registry would like it to allow. `None` of it: the repository itself.
pub(crate) fn scope(told: Option<&str>, repository: &str) -> String {
    let mut scopes = Vec::new();
    for one in told.unwrap_or_default().split_whitespace() {
        // The name may have colons: of a registry's port.
        if let Some((resource, _)) = one.rsplit_once(':')
            && resource.starts_with("repository:")
        {
            scopes.push(format!("{resource}:pull"));
        }
    }
    if scopes.is_empty() { format!("repository:{repository}:pull") } else { scopes.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        let owned = |t: Option<&str>| t.map(str::to_owned);
        Some(Challenge::Bearer { realm: realm.to_owned(), service: owned(service), scope: owned(scope) })
    }

    #[test]
    fn challenges_are_read_as_they_are_written() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/busybox:pull""#;
        let rows: &[(&[&str], Option<Challenge>)] = &[
            (
                &[hub],
                bearer(
                    "https://auth.docker.io/token",
                    Some("registry.docker.io"),
                    Some("repository:library/busybox:pull"),
                ),
            ),
            (&["Basic realm=\"x\""], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (&["Basic realm=\"a, b\", Bearer realm=r"], bearer("r", None, None)),
            (&["Basic realm=x", r#"BEARER Realm = "r" , Service=s"#], bearer("r", Some("s"), None)),
            (&[r#"Bearer realm="a\"b""#], bearer("a\"b", None, None)),
            (&["Negotiate", "Digest realm=\"x\", nonce=\"y\""], None),
            (&["Bearer service=\"x\""], None),
            (&["Bearer realm=\"open"], None),
            (&[""], None),
            (&[], None),
        ];
        for (lines, want) in rows {
            assert_eq!(&best(lines.iter().copied()), want, "{lines:?}");
        }
    }

    #[test]
    fn a_token_is_asked_for_pulling_alone() {
        let rows = [
            (None, "repository:a/b:pull"),
            (Some("repository:proxy/a/b:pull"), "repository:proxy/a/b:pull"),
            (Some("repository:a/b:pull,push,delete"), "repository:a/b:pull"),
            (Some("repository:a:push repository:b:*"), "repository:a:pull repository:b:pull"),
            (Some("registry:catalog:*"), "repository:a/b:pull"),
            (Some(""), "repository:a/b:pull"),
        ];
        for (told, want) in rows {
            assert_eq!(scope(told, "a/b"), want);
        }
    }
}
