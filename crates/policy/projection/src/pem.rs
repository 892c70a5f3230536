//! PEM as Go's reader takes it: what stands around and in front of the blocks is passed over, and so is a block that is broken.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Letters in a line of a block.
const LINE: usize = 64;

/// Contents of the blocks of a text, in order, whatever their type.
pub(crate) fn blocks(text: &str) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines().map(str::trim_end) {
        if let Some(kind) = line.strip_prefix("-----BEGIN ").and_then(|l| l.strip_suffix("-----")) {
            open = Some((kind, String::new()));
        } else if let Some((kind, body)) = &mut open {
            let end = line.strip_prefix("-----END ").and_then(|l| l.strip_suffix("-----"));
            match end {
                Some(end) if end == *kind => {
                    out.extend(STANDARD.decode(&*body));
                    open = None;
                }
                Some(_) => open = None,
                // A header, e.g. `Proc-Type: ...`.
                None if body.is_empty() && line.contains(':') => {}
                None => body.extend(line.chars().filter(|c| !c.is_ascii_whitespace())),
            }
        }
    }
    out
}

/// A chain of certificates without what stood between and in front of them, in its order.
#[must_use]
pub fn clean_chain(text: &str) -> String {
    certificates(&blocks(text))
}

/// Certificates (DER) as PEM, one after the other.
pub(crate) fn certificates<'a>(all: impl IntoIterator<Item = &'a Vec<u8>>) -> String {
    let mut out = String::new();
    for der in all {
        out.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = STANDARD.encode(der);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(LINE));
            out.push_str(line);
            out.push('\n');
            rest = more;
        }
        out.push_str("-----END CERTIFICATE-----\n");
    }
    out
}

#[cfg(test)]
mod tests;
