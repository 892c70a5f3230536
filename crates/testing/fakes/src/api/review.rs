//! What the server says of who calls a node: whose a token is, and what its owner may do.

use ports::api::Method;
use serde_json::{Value, json};

use super::FakeApi;

impl FakeApi {
    /// From now on everybody may do this and nothing else, each as `VERB SUBRESOURCE` of a node; `*`: everything. Nothing at
    /// first.
    pub fn allow(&self, what: &[&str]) {
        self.shared.with(|s| s.allows = what.iter().map(|w| (*w).to_owned()).collect());
    }

    /// Specs of reviews of a kind that were asked for, such as `TokenReview`.
    #[must_use]
    pub fn reviews(&self, kind: &str) -> Vec<Value> {
        let asked = self.requests();
        asked.iter().filter(|r| r.body["kind"] == kind).map(|r| r.body["spec"].clone()).collect()
    }

    /// The answer to a review; `None`: the request is none. A token `good-NAME` is NAME's, all others are nobody's.
    pub(super) fn review(&self, method: Method, body: &Value) -> Option<Value> {
        let spec = &body["spec"];
        let status = match body["kind"].as_str() {
            Some("TokenReview") if method == Method::Post => {
                match spec["token"].as_str().and_then(|t| t.strip_prefix("good-")) {
                    Some(name) => json!({ "authenticated": true, "user": { "username": name, "groups": ["tokens"] } }),
                    None => json!({ "authenticated": false, "error": "[invalid bearer token]" }),
                }
            }
            Some("SubjectAccessReview") if method == Method::Post => {
                let field = |name: &str| spec["resourceAttributes"][name].as_str().unwrap_or_default();
                let wants = format!("{} {}", field("verb"), field("subresource"));
                json!({ "allowed": self.shared.with(|s| s.allows.iter().any(|a| *a == wants || a == "*")) })
            }
            _ => return None,
        };
        Some(json!({ "status": status }))
    }
}
