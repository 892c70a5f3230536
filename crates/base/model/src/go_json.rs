//! JSON strings as Go's encoder writes them: hashes that a kubelet wrote are made from such texts.

use std::fmt::Write;

/// Appends a quoted string, with Go's escapes (HTML-safe).
pub fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A quoted string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    push_string(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::push_string;

    #[test]
    fn escapes_are_those_of_go() {
        let mut out = String::new();
        push_string(&mut out, "a\"b\\c\n\u{8}\u{c}<&>\u{1}\u{2028}ä");
        assert_eq!(out, r#""a\"b\\c\n\b\f\u003c\u0026\u003e\u0001\u2028ä""#);
    }
}
