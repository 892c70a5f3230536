//! What a file is: by its name where Go has a built-in type for it, else by its first bytes.

/// Go's own table; it knows nothing of `.log` and `.txt`.
const BY_ENDING: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("css", "text/css; charset=utf-8"),
    ("gif", "image/gif"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("xml", "text/xml; charset=utf-8"),
];

/// Beginnings that logs and archives have.
const BY_BYTES: &[(&[u8], &str)] = &[
    (b"\x1f\x8b\x08", "application/x-gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"\xef\xbb\xbf", "text/plain; charset=utf-8"),
    (b"\xfe\xff", "text/plain; charset=utf-16be"),
    (b"\xff\xfe", "text/plain; charset=utf-16le"),
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\0asm", "application/wasm"),
];

/// The ending decides for sure.
pub(super) fn by_name(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit('/').next()?.rsplit_once('.')?;
    BY_ENDING.iter().find(|(e, _)| e.eq_ignore_ascii_case(ending)).map(|(_, kind)| *kind)
}

/// Up to 512 first bytes. Markup counts as plain text: a log line must not run as a script in somebody's browser.
pub(super) fn by_bytes(head: &[u8]) -> &'static str {
    if let Some((_, kind)) = BY_BYTES.iter().find(|(start, _)| head.starts_with(start)) {
        return kind;
    }
    let control = |b: &u8| matches!(b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if head.iter().any(control) { "application/octet-stream" } else { "text/plain; charset=utf-8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_text_and_journals_are_not() {
        assert_eq!(by_name("a/b.JSON"), Some("application/json"));
        assert_eq!(by_name("a.b/messages"), None);
        assert_eq!(by_name("kubelet.log"), None);
        assert_eq!(by_bytes(b"<html>line\n\x1b[31mred"), "text/plain; charset=utf-8");
        assert_eq!(by_bytes(b"LPKSHHRH\0\0"), "application/octet-stream");
        assert_eq!(by_bytes(b"\x1f\x8b\x08\0"), "application/x-gzip");
        assert_eq!(by_bytes(b""), "text/plain; charset=utf-8");
    }
}
