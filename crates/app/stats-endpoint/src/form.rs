//! `application/x-www-form-urlencoded`, as strict as Go reads it.

/// Values of one parameter, in order.
pub(crate) fn values(text: &str, name: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for pair in text.split('&').filter(|p| !p.is_empty()) {
        if pair.contains(';') {
            return Err("invalid semicolon separator in query".to_owned());
        }
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decoded(key)?, decoded(value)?);
        if key == name.as_bytes() {
            found.push(String::from_utf8_lossy(&value).into_owned());
        }
    }
    Ok(found)
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = rest.get(..2).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
                let hex = digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 16).ok());
                let Some(value) = hex else {
                    let shown = String::from_utf8_lossy(rest.get(..2).unwrap_or(rest));
                    return Err(format!("invalid URL escape \"%{shown}\""));
                };
                out.push(value);
                rest = &rest[2..];
            }
            other => out.push(other),
        }
    }
    Ok(out)
}
