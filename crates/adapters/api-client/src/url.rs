//! Request URLs.

use std::fmt::Write;

use hyper::Uri;
use model::url::escape;

/// Server, path (escaped already) and query (not yet) in one.
pub(crate) fn join(server: &Uri, path: &str, query: &[(String, String)]) -> Option<Uri> {
    let mut text = format!("{}{path}", server.path().trim_end_matches('/'));
    for (index, (key, value)) in query.iter().enumerate() {
        let separator = if index == 0 { '?' } else { '&' };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{}={}", escape(key), escape(value));
    }
    let mut parts = server.clone().into_parts();
    parts.path_and_query = Some(text.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn urls_are_joined_and_queries_escaped() {
        let rows = [
            ("https://h:6443", "/api/v1/pods", vec![], "https://h:6443/api/v1/pods"),
            ("https://h/", "/api/v1/pods", vec![("a", "b=c,d!=e f")], "https://h/api/v1/pods?a=b%3Dc%2Cd%21%3De%20f"),
            ("https://h/k8s/c1", "/api", vec![("x", "1"), ("y", "ü")], "https://h/k8s/c1/api?x=1&y=%C3%BC"),
        ];
        for (server, path, query, wanted) in rows {
            let query: Vec<_> = query.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(join(&server.parse().unwrap(), path, &query).unwrap().to_string(), wanted);
        }
    }
}
