//! Bodies of `TokenReview` and `SubjectAccessReview`, and what their answers mean (interfaces 3.4, 9.2).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::User;

#[cfg(test)]
mod tests;

/// An answer that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReview {
    /// Not the JSON that was expected.
    #[error("review cannot be decoded: {0}")]
    Undecodable(String),
    /// A user without a name.
    #[error("token review names no user")]
    NoName,
    /// Allowed and denied at once.
    #[error("subject access review allows and denies at once")]
    Contradiction,
}

/// Path of token reviews.
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// Path of subject access reviews.
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Path and body of the question whose token this is. No audiences are set.
#[must_use]
pub fn token_review(token: &str) -> (&'static str, Value) {
    let body = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": { "token": token },
    });
    (TOKENS, body)
}

/// Path and body of the question whether a user may use a verb on a sub-resource of a node.
#[must_use]
pub fn access_review(user: &User, verb: &str, subresource: &str, node: &str) -> (&'static str, Value) {
    let mut spec = json!({
        "resourceAttributes": {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": node,
        },
        "user": user.name,
        "groups": user.groups,
    });
    if !user.uid.is_empty() {
        spec["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        spec["extra"] = json!(user.extra);
    }
    let body = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
    });
    (ACCESS, body)
}

#[derive(Deserialize)]
struct Review<S> {
    #[serde(default)]
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: Option<UserInfo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
    denied: bool,
}

/// The user of a token; `None`: the token is nobody's.
///
/// # Errors
/// The answer cannot be understood.
pub fn decide_token(answer: &[u8]) -> Result<Option<User>, BadReview> {
    let review: Review<TokenStatus> =
        serde_json::from_slice(answer).map_err(|e| BadReview::Undecodable(e.to_string()))?;
    if !review.status.authenticated {
        return Ok(None);
    }
    let user = review.status.user.unwrap_or_default();
    if user.username.is_empty() {
        return Err(BadReview::NoName);
    }
    Ok(Some(User {
        name: user.username,
        uid: user.uid,
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    }))
}

/// Whether the answer allows it. No opinion is a denial.
///
/// # Errors
/// The answer cannot be understood.
pub fn decide_access(answer: &[u8]) -> Result<bool, BadReview> {
    let review: Review<AccessStatus> =
        serde_json::from_slice(answer).map_err(|e| BadReview::Undecodable(e.to_string()))?;
    match (review.status.allowed, review.status.denied) {
        (true, true) => Err(BadReview::Contradiction),
        (allowed, _) => Ok(allowed),
    }
}
