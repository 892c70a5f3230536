//! Who asked the API server for what, from its own audit log.

use serde_json::Value;

/// One line per request: when it was answered, or when a long-running one began to be.
pub(super) const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, Panic]\n\
                                 rules:\n- level: Request\n  resources:\n  - group: \"\"\n    resources: [nodes/status, pods/status]\n\
                                 - level: Metadata\n";

/// A request that the API server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// User that the certificate or token stood for.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` ...
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// `pods`, `pods/status`, `leases` ...; empty for paths that are no resources.
    pub resource: String,
    /// Namespace and name of the object, as far as the path tells them.
    pub object: (String, String),
    /// HTTP status code of the answer.
    pub code: u16,
    /// What the client called itself.
    pub agent: String,
    /// When it arrived (RFC 3339, microseconds).
    pub at: String,
    /// What was sent, for `nodes/status` and `pods/status`; null else.
    pub body: Value,
}

/// All requests of an audit log. A watch is counted once, when it begins.
pub(super) fn requests(log: &str) -> Vec<Request> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let once = |e: &Value| e["verb"] != "watch" || e["stage"] == "ResponseStarted";
    let first = |e: &Value| e["stage"] == "ResponseComplete" || e["verb"] == "watch";
    lines.filter(|e| once(e) && first(e)).map(|e| request(&e)).collect()
}

fn request(event: &Value) -> Request {
    let word = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let target = &event["objectRef"];
    let mut resource = word(&target["resource"]);
    if let Some(sub) = target["subresource"].as_str() {
        resource = format!("{resource}/{sub}");
    }
    Request {
        user: word(&event["user"]["username"]),
        verb: word(&event["verb"]),
        uri: word(&event["requestURI"]),
        resource,
        object: (word(&target["namespace"]), word(&target["name"])),
        code: event["responseStatus"]["code"].as_u64().and_then(|c| u16::try_from(c).ok()).unwrap_or(0),
        agent: word(&event["userAgent"]),
        at: word(&event["requestReceivedTimestamp"]),
        body: event["requestObject"].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::requests;

    #[test]
    fn a_watch_counts_once_and_other_requests_when_they_are_answered() {
        let log = r#"{"stage":"ResponseStarted","verb":"watch","user":{"username":"n"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"watch","user":{"username":"n"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"n"},"objectRef":{"resource":"pods","subresource":"status","namespace":"a","name":"b"},"responseStatus":{"code":200}}
not json"#;
        let seen = requests(log);
        assert_eq!(seen.len(), 2);
        assert_eq!((seen[1].resource.as_str(), seen[1].code), ("pods/status", 200));
        assert_eq!(seen[1].object, ("a".to_owned(), "b".to_owned()));
    }
}
