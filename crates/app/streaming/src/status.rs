//! `metav1.Status` as error streams carry it (v4 and later). Pure.

use serde_json::{Value, json};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0; of an attach: the streams ended.
    Success,
    /// Another exit code.
    Exit(i32),
    /// It could not be run or followed to its end.
    Failed(String),
}

impl Outcome {
    /// Reads what an error stream carried. Nothing at all is success, as clients see it.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::Success;
        }
        let shown = || String::from_utf8_lossy(bytes).into_owned();
        let Ok(status) = serde_json::from_slice::<Value>(bytes) else {
            return Self::Failed(format!("error stream protocol error: {:?}", shown()));
        };
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        match status["status"].as_str() {
            Some("Success") => Self::Success,
            Some("Failure") if status["reason"] == "NonZeroExitCode" => {
                let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let code = causes.iter().find(|c| c["reason"] == "ExitCode").map(|c| text(&c["message"]));
                match code.as_deref().map(str::parse::<u8>) {
                    Some(Ok(code)) => Self::Exit(code.into()),
                    Some(Err(_)) => Self::Failed("error stream protocol error: invalid exit code value".to_owned()),
                    None => Self::Failed("error stream protocol error: no ExitCode cause given".to_owned()),
                }
            }
            Some("Failure") => Self::Failed(text(&status["message"])),
            _ => Self::Failed("error stream protocol error: unknown error".to_owned()),
        }
    }

    /// As a WebSocket client gets it.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let status = match self {
            Self::Success => json!({"metadata": {}, "status": "Success"}),
            Self::Exit(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                ),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failed(why) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {why}"),
                "reason": "InternalError",
                "details": {"causes": [{"message": why}]},
                "code": 500,
            }),
        };
        status.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests;
