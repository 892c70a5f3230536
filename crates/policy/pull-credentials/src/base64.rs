//! Standard base64, with or without padding.

/// Bytes of a text; `None` when it is no base64. Line breaks are skipped.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held, mut digits, mut padding) = (0_u32, 0_u32, 0_usize, 0_usize);
    for b in text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')) {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        digits += 1;
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    let whole = digits % 4 != 1 && (padding == 0 || (padding <= 2 && (digits + padding).is_multiple_of(4)));
    whole.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_table() {
        for (text, expected) in [
            ("", Some("")),
            ("dTpw", Some("u:p")),
            ("dXNlcjpwYXNz", Some("user:pass")),
            ("dXNlcjpwYXM=", Some("user:pas")),
            ("dXNlcjpwYXM", Some("user:pas")),
            ("dXNlcjpwYQ==", Some("user:pa")),
            ("dXNl\r\ncjpwYQ==\n", Some("user:pa")),
            ("dXNlcjpwYQ=", None),
            ("dX=NlcjpwYQ", None),
            ("d", None),
            ("dXNl-jpw", None),
        ] {
            assert_eq!(decode(text), expected.map(|e| e.as_bytes().to_vec()), "{text:?}");
        }
    }
}
