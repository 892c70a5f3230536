//! Tokens of pods: when one is fresh, and how one is asked for (interfaces 9.2).

use std::collections::BTreeMap;
use std::time::Duration;

use contract::objects::{ObjectError, Token};
use model::core::Pod;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::{PodUid, Timestamp};
use ports::api::{ApiError, ApiExt, ApiServer, Method, Request};
use tokio::sync::oneshot;

/// No token is used for longer than this, however long it is good.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// A renewal that failed is tried again after this.
pub(crate) const RETRY: Duration = Duration::from_secs(30);
/// Renewals of many pods are spread over this.
pub(crate) const MAX_JITTER_NS: i64 = 10_000_000_000;

/// Which token of which pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenKey {
    pub(crate) uid: PodUid,
    pub(crate) account: String,
    pub(crate) audience: String,
    pub(crate) expiration_s: i64,
}

/// Who waits for which token. Its keys are the requests under way.
pub(crate) type Awaited = BTreeMap<TokenKey, Vec<oneshot::Sender<Result<Token, ObjectError>>>>;

/// Tokens that were handed out.
#[derive(Debug, Default)]
pub(crate) struct Tokens(BTreeMap<TokenKey, Token>);

impl Tokens {
    /// The token, if it need not be renewed yet.
    pub(crate) fn fresh(&self, key: &TokenKey, now: Timestamp) -> Option<Token> {
        self.0.get(key).filter(|t| now < t.refresh_at).cloned()
    }

    pub(crate) fn put(&mut self, key: TokenKey, token: Token) {
        self.0.insert(key, token);
    }

    /// Forgets the tokens of a pod that is gone; answers which.
    pub(crate) fn forget(&mut self, uid: &PodUid) -> Vec<TokenKey> {
        let gone: Vec<TokenKey> = self.0.keys().filter(|key| key.uid == *uid).cloned().collect();
        gone.iter().for_each(|key| drop(self.0.remove(key)));
        gone
    }

    /// What a failed renewal comes to: the old token while it is valid, else the failure.
    pub(crate) fn instead(&self, key: &TokenKey, why: &str, now: Timestamp) -> Result<Token, ObjectError> {
        match self.0.get(key) {
            None => Err(ObjectError::Failed(format!("failed to fetch token: {why}"))),
            Some(old) if old.expires_at <= now => {
                let TokenKey { uid, account, audience, .. } = key;
                let name = format!("{account} for {audience:?} of pod {uid}");
                Err(ObjectError::Failed(format!("token {name} expired and refresh failed: {why}")))
            }
            Some(old) => Ok(Token { refresh_at: now.plus(RETRY), ..old.clone() }),
        }
    }
}

/// When a token must be renewed: after 80 % of its life or a day, whichever is first, minus a jitter.
pub(crate) fn refresh_at(expires_at: Timestamp, life_s: i64, jitter_ns: i64) -> Timestamp {
    const SECOND: i64 = 1_000_000_000;
    let life = life_s.saturating_mul(SECOND);
    let issued = expires_at.0.saturating_sub(life);
    let day = issued.saturating_add(i64::try_from(MAX_AGE.as_nanos()).unwrap_or(i64::MAX));
    let most = expires_at.0.saturating_sub((life_s.saturating_mul(20) / 100).saturating_mul(SECOND));
    Timestamp(day.min(most).saturating_sub(jitter_ns))
}

/// Asks the API server for a token that dies with the pod.
pub(crate) async fn request(api: &dyn ApiServer, pod: &Pod, key: &TokenKey, jitter_ns: i64) -> Result<Token, ApiError> {
    let audiences: Vec<&str> = if key.audience.is_empty() { Vec::new() } else { vec![&key.audience] };
    let body = serde_json::json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": audiences,
            "expirationSeconds": key.expiration_s,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": model::pod::name(pod),
                "uid": key.uid.as_str(),
            },
        },
    });
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", model::pod::namespace(pod), key.account);
    let request = Request::new(Method::Post, path).body(body.to_string());
    let answer: serde_json::Value = api.fetch(request).await?;
    let garbage = || ApiError::Garbage { message: "no token in the answer to a token request".to_owned() };
    read(&answer, key.expiration_s, jitter_ns).ok_or_else(garbage)
}

fn read(answer: &serde_json::Value, asked_s: i64, jitter_ns: i64) -> Option<Token> {
    let status = answer.get("status")?;
    let text = status.get("token")?.as_str().filter(|t| !t.is_empty())?.to_owned();
    let expires: Time = serde_json::from_value(status.get("expirationTimestamp")?.clone()).ok()?;
    let expires_at = Timestamp::from_api(&expires);
    // Servers may grant another life than was asked for.
    let life_s = answer.pointer("/spec/expirationSeconds").and_then(serde_json::Value::as_i64).unwrap_or(asked_s);
    Some(Token { text, expires_at, refresh_at: refresh_at(expires_at, life_s, jitter_ns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(s: i64) -> Timestamp {
        Timestamp::from_secs(s)
    }

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life_or_a_day() {
        let table = [
            ("an hour", 3600, 3600, 0, 2880),
            ("an hour, with jitter", 3600, 3600, 10, 2870),
            ("ten minutes", 600, 600, 0, 480),
            ("a year", 31_536_000, 31_536_000, 0, 86_400),
            ("a day and a bit: four fifths come first", 90_000, 90_000, 0, 72_000),
        ];
        for (what, life, expires, jitter, expected) in table {
            assert_eq!(refresh_at(at(expires), life, jitter * 1_000_000_000), at(expected), "{what}");
        }
    }

    fn key() -> TokenKey {
        TokenKey { uid: "u".into(), account: "default".into(), audience: String::new(), expiration_s: 3607 }
    }

    #[test]
    fn the_old_token_serves_while_it_is_valid() {
        let mut tokens = Tokens::default();
        assert_eq!(
            tokens.instead(&key(), "boom", at(1)),
            Err(ObjectError::Failed("failed to fetch token: boom".to_owned()))
        );
        tokens.put(key(), Token { text: "t".into(), expires_at: at(100), refresh_at: at(80) });
        assert!(tokens.fresh(&key(), at(79)).is_some());
        assert!(tokens.fresh(&key(), at(80)).is_none());
        let old = tokens.instead(&key(), "boom", at(90)).unwrap();
        assert_eq!((old.text.as_str(), old.refresh_at), ("t", at(120)));
        let text = tokens.instead(&key(), "boom", at(100)).unwrap_err().to_string();
        assert!(text.ends_with("expired and refresh failed: boom"), "{text}");
        tokens.forget(&"u".into());
        assert!(tokens.fresh(&key(), at(1)).is_none());
    }

    #[test]
    fn an_answer_is_read_with_the_life_that_was_granted() {
        let answer = serde_json::json!({
            "spec": { "expirationSeconds": 1000 },
            "status": { "token": "abc", "expirationTimestamp": "1970-01-01T00:20:00Z" },
        });
        let token = read(&answer, 3607, 0).unwrap();
        assert_eq!((token.expires_at, token.refresh_at), (at(1200), at(1000)));
        assert_eq!(read(&serde_json::json!({ "status": {} }), 1, 0), None);
    }
}
