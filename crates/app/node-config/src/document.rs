//! YAML or JSON text to a JSON object of the right kind.

use serde_json::{Map, Value};

use crate::error::{ConfigError, Warning};

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";
/// Far beyond any configuration.
const MAX_YAML_EVENTS: usize = 100_000;

/// The fields of the document, without `apiVersion` and `kind`.
pub(crate) fn parse(text: &str, warnings: &mut Vec<Warning>) -> Result<Map<String, Value>, ConfigError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(ConfigError::whole_file("is empty"));
    }
    let document = value(text, warnings)?.ok_or_else(|| ConfigError::whole_file("is empty"))?;
    let Value::Object(mut fields) = document else {
        return Err(ConfigError::whole_file("must be a mapping of field names to values").value(&document));
    };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match fields.remove(key) {
            Some(Value::String(found)) if found == wanted => {}
            None | Some(Value::Null) => return Err(ConfigError::new(key, "must be given").allowed(wanted)),
            Some(other) => {
                return Err(ConfigError::new(key, "is not what this file must be").value(&other).allowed(wanted));
            }
        }
    }
    Ok(fields)
}

fn value(text: &str, warnings: &mut Vec<Warning>) -> Result<Option<Value>, ConfigError> {
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(Some(value));
    }
    let result = match first_document(text, false) {
        Err(error) => match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or("a key");
                let reason = format!("{key} is given twice in one mapping, the last one counts");
                warnings.push(Warning::new(position(&error), reason));
                first_document(text, true)
            }
            _ => Err(error),
        },
        result => result,
    };
    result
        .map_err(|error| ConfigError::new(position(&error), format!("is neither YAML nor JSON: {}", describe(&error))))
}

/// The first document that is not empty, with YAML 1.1 octal numbers as all Kubernetes tools read them.
fn first_document(text: &str, last_duplicate_wins: bool) -> Result<Option<Value>, serde_saphyr::Error> {
    use serde_saphyr::options::DuplicateKeyPolicy::{Error, LastWins};
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! { max_events: MAX_YAML_EVENTS },
        duplicate_keys: if last_duplicate_wins { LastWins } else { Error },
    };
    let mut reader = text.as_bytes();
    serde_saphyr::read_with_options::<_, Value>(&mut reader, options).next().transpose()
}

fn position(error: &serde_saphyr::Error) -> String {
    error.location().map_or_else(String::new, |at| format!("line {}, column {}", at.line(), at.column()))
}

/// The parser's words on one line.
fn describe(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fields that hold a path. Relative ones start at the folder of the main file.
const PATHS: &[&[&str]] = &[
    &["staticPodPath"],
    &["authentication", "x509", "clientCAFile"],
    &["tlsCertFile"],
    &["tlsPrivateKeyFile"],
    &["resolvConf"],
    &["volumePluginDir"],
    &["podLogsDir"],
];

/// Makes relative paths start at `folder` (interfaces 1.1 step 3).
pub(crate) fn resolve_paths(fields: &mut Map<String, Value>, folder: &std::path::Path) {
    for path in PATHS {
        let Some((first, rest)) = path.split_first() else { continue };
        let found = rest.iter().try_fold(fields.get_mut(*first), |at, key| at.map(|v| v.get_mut(*key)));
        if let Some(Some(Value::String(text))) = found
            && !text.is_empty()
        {
            *text = folder.join(&*text).to_string_lossy().into_owned();
        }
    }
}
