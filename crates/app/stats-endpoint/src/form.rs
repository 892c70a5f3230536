//! `application/x-www-form-urlencoded`, as strict as Go reads it.

use model::url::unescape_query;

/// Values of one parameter, in order.
pub(crate) fn values(text: &str, name: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for pair in text.split('&').filter(|p| !p.is_empty()) {
        if pair.contains(';') {
            return Err("invalid semicolon separator in query".to_owned());
        }
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let text = |part| unescape_query(part).map_err(|e| e.to_string());
        let (key, value) = (text(key)?, text(value)?);
        if key == name {
            found.push(value);
        }
    }
    Ok(found)
}
