//! `CredentialProviderConfig`: which plugins give credentials for which images (interfaces 8.6).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::duration;
use crate::location::check_pattern;

#[cfg(test)]
mod tests;

/// Kind of the file.
const KIND: &str = "CredentialProviderConfig";
/// Versions of the file, newest first.
const CONFIG_VERSIONS: [&str; 3] =
    ["kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];
/// Version of the exchange that tokens need.
const V1: &str = "credentialprovider.kubelet.k8s.io/v1";
/// Versions of the exchange with a plugin.
const EXCHANGE_VERSIONS: [&str; 3] =
    [V1, "credentialprovider.kubelet.k8s.io/v1alpha1", "credentialprovider.kubelet.k8s.io/v1beta1"];
/// More events than any configuration has.
const MAX_YAML_EVENTS: usize = 100_000;

/// One plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provider {
    /// Name of the executable in the folder of plugins.
    pub name: String,
    /// Patterns of images that it is asked for.
    pub match_images: Vec<String>,
    /// How long credentials are kept when the plugin does not say.
    pub default_cache_duration: Duration,
    /// Version of the exchange.
    pub api_version: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables on top of the node daemon's own.
    pub env: Vec<(String, String)>,
    /// Set for plugins that are given a token of the pod's service account.
    pub token: Option<TokenAttributes>,
}

/// What a plugin is told of the pod's service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenAttributes {
    /// Audience of the token.
    pub audience: String,
    /// Whether pods without a service account (static ones) get nothing from this plugin.
    pub require_service_account: bool,
    /// Whether credentials are kept per token instead of per service account.
    pub cache_by_token: bool,
    /// Annotations without which the plugin is not asked.
    pub required_annotations: Vec<String>,
    /// Annotations that are passed on where they exist.
    pub optional_annotations: Vec<String>,
}

/// What is wrong with a configuration, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {}{}{reason}", file.display(), key, if key.is_empty() { "" } else { ": " })]
pub struct ConfigError {
    /// File.
    pub file: PathBuf,
    /// Field, e.g. `providers[0].matchImages[1]`; empty: the file as a whole.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawConfig {
    #[allow(dead_code, reason = "looked at before, here so that it is a known field")]
    api_version: String,
    #[allow(dead_code, reason = "looked at before, here so that it is a known field")]
    kind: String,
    providers: Option<Vec<RawProvider>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawProvider {
    name: Option<String>,
    match_images: Option<Vec<String>>,
    default_cache_duration: Option<String>,
    api_version: Option<String>,
    args: Option<Vec<String>>,
    env: Option<Vec<RawVar>>,
    token_attributes: Option<RawToken>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVar {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawToken {
    service_account_token_audience: Option<String>,
    cache_type: Option<String>,
    require_service_account: Option<bool>,
    required_service_account_annotation_keys: Option<Vec<String>>,
    optional_service_account_annotation_keys: Option<Vec<String>>,
}

/// Files of a folder that are read, in their order.
#[must_use]
pub fn files_of_folder(mut names: Vec<String>) -> Vec<String> {
    names.retain(|n| matches!(Path::new(n).extension().and_then(|e| e.to_str()), Some("json" | "yaml" | "yml")));
    names.sort();
    names
}

/// Plugins of all files, in order. Names must differ over all of them.
///
/// # Errors
/// Everything that is wrong, in the order of the files.
pub fn load(files: &[(PathBuf, String)]) -> Result<Vec<Provider>, Vec<ConfigError>> {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for (file, text) in files {
        let mut check = Check { file, errors: &mut errors };
        let raw = match check.read(text) {
            Some(raw) => raw,
            None => continue,
        };
        if raw.is_empty() {
            check.say("providers", "at least 1 item in plugins is required");
        }
        for (i, provider) in raw.into_iter().enumerate() {
            let at = format!("providers[{i}]");
            let name = provider.name.clone().unwrap_or_default();
            if !names.insert(name.clone()) {
                check.say(&format!("{at}.name"), &format!("duplicate provider name {name:?}"));
            }
            out.extend(check.provider(&at, provider));
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

struct Check<'a> {
    file: &'a Path,
    errors: &'a mut Vec<ConfigError>,
}

impl Check<'_> {
    fn say(&mut self, key: &str, reason: &str) {
        let error = ConfigError { file: self.file.to_owned(), key: key.to_owned(), reason: reason.to_owned() };
        self.errors.push(error);
    }

    fn read(&mut self, text: &str) -> Option<Vec<RawProvider>> {
        let document = match document(text) {
            Ok(document) => document,
            Err(reason) => {
                self.say("", &reason);
                return None;
            }
        };
        let known = |key: &str, allowed: &[&str]| match document.get(key).and_then(Value::as_str) {
            Some(found) if allowed.contains(&found) => None,
            Some(found) => Some(format!("{found:?} is not what this file must be ({})", allowed.join(", "))),
            None => Some(format!("must be given ({})", allowed.join(", "))),
        };
        for (key, allowed) in [("kind", &[KIND][..]), ("apiVersion", &CONFIG_VERSIONS[..])] {
            if let Some(reason) = known(key, allowed) {
                self.say(key, &reason);
                return None;
            }
        }
        match serde_path_to_error::deserialize::<_, RawConfig>(&document) {
            Ok(config) => Some(config.providers.unwrap_or_default()),
            Err(e) => {
                let key = e.path().to_string();
                self.say(if key == "." { "" } else { &key }, &e.inner().to_string());
                None
            }
        }
    }

    fn provider(&mut self, at: &str, raw: RawProvider) -> Option<Provider> {
        let before = self.errors.len();
        let name = raw.name.unwrap_or_default();
        self.name(&format!("{at}.name"), &name);
        let api_version = raw.api_version.unwrap_or_default();
        if !EXCHANGE_VERSIONS.contains(&api_version.as_str()) {
            let reason = format!("{api_version:?} is not supported ({})", EXCHANGE_VERSIONS.join(", "));
            self.say(&format!("{at}.apiVersion"), &reason);
        }
        let match_images = raw.match_images.unwrap_or_default();
        if match_images.is_empty() {
            self.say(&format!("{at}.matchImages"), "at least 1 item in matchImages is required");
        }
        for (i, pattern) in match_images.iter().enumerate() {
            if let Err(e) = check_pattern(pattern) {
                self.say(&format!("{at}.matchImages[{i}]"), &format!("match image {pattern:?} is invalid: {e}"));
            }
        }
        let key = format!("{at}.defaultCacheDuration");
        let parsed = match raw.default_cache_duration.as_deref() {
            None => Err("is required".to_owned()),
            Some(text) => duration::parse(text).map_err(|e| format!("{text:?} {e}")),
        };
        let default_cache_duration = parsed.unwrap_or_else(|reason| {
            self.say(&key, &reason);
            Duration::ZERO
        });
        let token = raw.token_attributes.and_then(|t| self.token(&format!("{at}.tokenAttributes"), t, &api_version));
        let env = raw.env.unwrap_or_default().into_iter().map(|v| (v.name, v.value)).collect();
        let args = raw.args.unwrap_or_default();
        let fine = self.errors.len() == before;
        fine.then_some(Provider { name, match_images, default_cache_duration, api_version, args, env, token })
    }

    fn name(&mut self, key: &str, name: &str) {
        for (wrong, reason) in [
            (name.is_empty(), "is required"),
            (name.contains('/'), "provider name cannot contain '/'"),
            (name.contains(' '), "provider name cannot contain spaces"),
            (name == ".", "provider name cannot be '.'"),
            (name == "..", "provider name cannot be '..'"),
        ] {
            if wrong {
                self.say(key, reason);
            }
        }
    }

    fn token(&mut self, at: &str, raw: RawToken, api_version: &str) -> Option<TokenAttributes> {
        let audience = raw.service_account_token_audience.unwrap_or_default();
        if audience.is_empty() {
            self.say(&format!("{at}.serviceAccountTokenAudience"), "is required");
        }
        if api_version != V1 {
            self.say(at, &format!("tokenAttributes is only supported for {V1} API version"));
        }
        let required = raw.required_service_account_annotation_keys.unwrap_or_default();
        let optional = raw.optional_service_account_annotation_keys.unwrap_or_default();
        match raw.require_service_account {
            None => self.say(&format!("{at}.requireServiceAccount"), "is required"),
            Some(false) if !required.is_empty() => self.say(
                &format!("{at}.requiredServiceAccountAnnotationKeys"),
                "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set",
            ),
            Some(_) => {}
        }
        self.annotation_keys(&format!("{at}.requiredServiceAccountAnnotationKeys"), &required);
        self.annotation_keys(&format!("{at}.optionalServiceAccountAnnotationKeys"), &optional);
        if let Some(both) = required.iter().find(|k| optional.contains(k)) {
            self.say(at, &format!("{both:?}: annotation keys cannot be both required and optional"));
        }
        let cache_type = raw.cache_type.unwrap_or_default();
        if !matches!(cache_type.as_str(), "ServiceAccount" | "Token") {
            let reason = format!("{cache_type:?} is not supported (ServiceAccount, Token)");
            self.say(&format!("{at}.cacheType"), &reason);
        }
        Some(TokenAttributes {
            audience,
            require_service_account: raw.require_service_account?,
            cache_by_token: cache_type == "Token",
            required_annotations: required,
            optional_annotations: optional,
        })
    }

    fn annotation_keys(&mut self, at: &str, keys: &[String]) {
        for (i, key) in keys.iter().enumerate() {
            if !is_qualified_name(&key.to_lowercase()) {
                self.say(&format!("{at}[{i}]"), &format!("{key:?} cannot be the key of an annotation"));
            }
            if keys[..i].contains(key) {
                self.say(&format!("{at}[{i}]"), &format!("{key:?} is given twice"));
            }
        }
    }
}

/// `[prefix/]name`, in lower case.
fn is_qualified_name(key: &str) -> bool {
    let ends = |s: &str| {
        let alnum = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        alnum(s.bytes().next()) && alnum(s.bytes().last())
    };
    let name = |s: &str| {
        s.len() <= 63 && ends(s) && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let label = |s: &str| ends(s) && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match key.split_once('/') {
        None => name(key),
        Some((prefix, rest)) => prefix.len() <= 253 && prefix.split('.').all(label) && name(rest),
    }
}

/// The first document that is not empty.
fn document(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! { max_events: MAX_YAML_EVENTS },
    };
    let mut reader = text.trim_start_matches('\u{feff}').as_bytes();
    let first = serde_saphyr::read_with_options::<_, Value>(&mut reader, options).next().transpose();
    let words = |e: serde_saphyr::Error| {
        let at = e.location().map_or_else(String::new, |at| format!("line {}, column {}: ", at.line(), at.column()));
        let text = e.without_snippet().to_string();
        format!("{at}is neither YAML nor JSON: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    match first.map_err(words)? {
        None | Some(Value::Null) => Err("is empty".to_owned()),
        Some(value @ Value::Object(_)) => Ok(value),
        Some(_) => Err("must be a mapping of field names to values".to_owned()),
    }
}
