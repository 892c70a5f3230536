//! Quoting as a Go program prints with `%q`.

use std::fmt::Write;

/// `text` in double quotes; what is not printable is escaped, bytes that are no UTF-8 as `\xNN`.
#[must_use]
pub fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            escape(c, &mut out);
        }
        for b in chunk.invalid() {
            let _infallible = write!(out, "\\x{b:02x}");
        }
    }
    out.push('"');
    out
}

fn escape(c: char, out: &mut String) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\u{b}' => "\\v",
        c if (c as u32) < 0x20 || c as u32 == 0x7f => {
            let _infallible = write!(out, "\\x{:02x}", c as u32);
            return;
        }
        c => return out.push(c),
    };
    out.push_str(short);
}
