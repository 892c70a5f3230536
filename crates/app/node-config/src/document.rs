//! YAML or JSON text to a JSON object of the right kind.

use std::path::Path;

use serde_json::{Map, Value};
use static_pod::yaml::{self, Position};

use crate::error::{ConfigError, Warning};

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";

/// The fields of the document, without `apiVersion` and `kind`.
pub(crate) fn parse(text: &str, warnings: &mut Vec<Warning>) -> Result<Map<String, Value>, ConfigError> {
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

/// The text of a file.
pub(crate) fn read_text(file: &Path) -> Result<String, ConfigError> {
    let bytes = std::fs::read(file).map_err(|e| ConfigError::whole_file(format!("cannot be read: {e}")))?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        ConfigError::whole_file(format!("is not UTF-8: byte {at} is not part of a character"))
    })
}

/// What a text says; `None`: nothing.
pub(crate) fn value(text: &str, warnings: &mut Vec<Warning>) -> Result<Option<Value>, ConfigError> {
    let position = |at: Option<Position>| at.map(|at| at.to_string()).unwrap_or_default();
    let document = yaml::read(text)
        .map_err(|e| ConfigError::new(position(e.at), format!("is neither YAML nor JSON: {}", e.reason)))?;
    if let Some((at, reason)) = document.duplicate {
        warnings.push(Warning::new(position(at), reason));
    }
    Ok(document.value)
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
pub(crate) fn resolve_paths(fields: &mut Map<String, Value>, folder: &Path) {
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
