//! Files that a kubeconfig is, or names.

use std::path::Path;

use model::k8s_openapi::ByteString;
use serde_json::Value;

use super::fields::Field;
use super::problem::Problem;
use crate::pem::PemError;

/// Larger files are no kubeconfigs, certificates or tokens.
const MAX_FILE: u64 = 4 << 20;

/// Contents of a file, or why there are none.
pub(super) fn contents(file: &Path) -> Result<Vec<u8>, String> {
    let facts = std::fs::metadata(file).map_err(|e| format!("cannot be read: {e}"))?;
    if facts.is_dir() {
        return Err("is a directory".to_owned());
    }
    if facts.len() > MAX_FILE {
        return Err(format!("is larger than {MAX_FILE} bytes"));
    }
    std::fs::read(file).map_err(|e| format!("cannot be read: {e}"))
}

/// Where a PEM text came from.
pub(super) struct Origin {
    problem: Problem,
}

impl Origin {
    pub(super) fn because(&self, error: &PemError) -> Problem {
        let out_of_date = matches!(error, PemError::Expired(_) | PemError::NotYetValid(_));
        Problem { reason: error.to_string(), out_of_date, ..self.problem.clone() }
    }
}

/// `<key>-data` (base64) if it is there, else the file named by `<key>`.
pub(super) fn data_or_file(field: &Field<'_>, key: &str, problems: &mut Vec<Problem>) -> Option<(Vec<u8>, Origin)> {
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
