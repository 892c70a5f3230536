//! Extended headers of POSIX archives: `LENGTH KEY=VALUE\n`, values of any bytes.

/// A moment: whole seconds, and what is to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

/// What such a header says of the entry behind it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Pax {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    pub(crate) uid: Option<u64>,
    pub(crate) gid: Option<u64>,
    pub(crate) mtime: Option<Time>,
    pub(crate) xattrs: Vec<(String, Vec<u8>)>,
}

const XATTR: &str = "SCHILY.xattr.";
const SPARSE: &str = "GNU.sparse.";

/// Reads a header over what earlier ones said.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(mut text: &[u8], pax: &mut Pax) -> Result<(), String> {
    while !text.is_empty() {
        let (key, value, rest) = record(text).ok_or("malformed record in an extended header")?;
        take(key, value, pax)?;
        text = rest;
    }
    Ok(())
}

/// Key, value, and what follows.
fn record(text: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let space = text.iter().take(20).position(|b| *b == b' ')?;
    let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
    let body = text.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|b| *b == b'=')?;
    Some((std::str::from_utf8(&body[..equals]).ok()?, &body[equals + 1..], &text[length..]))
}

/// An empty value takes back what was said before (POSIX pax).
fn take(key: &str, value: &[u8], pax: &mut Pax) -> Result<(), String> {
    let number = || -> Result<Option<u64>, String> {
        if value.is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(value).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
        text.and_then(|t| t.parse().ok()).map(Some).ok_or_else(|| format!("{key} of an extended header is no number"))
    };
    let bytes = || Some(value.to_vec()).filter(|v| !v.is_empty());
    match key {
        "path" => pax.path = bytes(),
        "linkpath" => pax.link = bytes(),
        "size" => pax.size = number()?,
        "uid" => pax.uid = number()?,
        "gid" => pax.gid = number()?,
        "mtime" if value.is_empty() => pax.mtime = None,
        "mtime" => pax.mtime = Some(time(value).ok_or("mtime of an extended header is no time")?),
        key if key.starts_with(SPARSE) => return Err("a sparse file, which no layer has".to_owned()),
        key => {
            if let Some(name) = key.strip_prefix(XATTR) {
                pax.xattrs.retain(|(known, _)| known != name);
                pax.xattrs.push((name.to_owned(), value.to_vec()));
            }
        }
    }
    Ok(())
}

/// Decimal seconds, perhaps negative, perhaps with a fraction.
fn time(value: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: i64 = digits.parse().ok()?;
    match text.starts_with('-') && nanoseconds > 0 {
        true => Some(Time { seconds: seconds.checked_sub(1)?, nanoseconds: 1_000_000_000 - nanoseconds }),
        false => Some(Time { seconds, nanoseconds }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &[u8]) -> Result<Pax, String> {
        let mut pax = Pax::default();
        read(text, &mut pax).map(|()| pax)
    }

    fn record(key: &str, value: &[u8]) -> Vec<u8> {
        let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let length = (1..).find(|n: &usize| n.to_string().len() + body.len() == *n).unwrap();
        [length.to_string().as_bytes(), &body].concat()
    }

    #[test]
    fn records_are_parted_by_their_length_not_by_line_ends() {
        let value = b"\n=\n\0z";
        let text =
            [record("path", b"ab"), record("SCHILY.xattr.user.a", value), record("mtime", b"12.3456789")].concat();
        let pax = parsed(&text).unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"ab"[..]));
        assert_eq!(pax.xattrs, [("user.a".to_owned(), value.to_vec())]);
        assert_eq!(pax.mtime, Some(Time { seconds: 12, nanoseconds: 345_678_900 }));
        let none = parsed(&[record("size", b"7"), record("size", b"")].concat()).unwrap();
        assert_eq!(none.size, None, "an empty value takes it back");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let wrong =
            [("size", "-1"), ("size", "a"), ("uid", "+1"), ("mtime", "x"), ("mtime", "1.x"), ("GNU.sparse.major", "1")];
        let wrong = wrong.map(|(key, value)| record(key, value.as_bytes()));
        let broken = ["x", "5 a=b", "99 path=a\n", "0 path=a\n", "2 ", "18446744073709551615 path=a\n", "7 patha\n"];
        for text in wrong.iter().map(Vec::as_slice).chain(broken.iter().map(|t| t.as_bytes())) {
            assert!(parsed(text).is_err(), "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn times_before_the_epoch() {
        assert_eq!(time(b"-1.25"), Some(Time { seconds: -2, nanoseconds: 750_000_000 }));
        assert_eq!(time(b"-3"), Some(Time { seconds: -3, nanoseconds: 0 }));
        assert_eq!(time(b"-0.5"), Some(Time { seconds: -1, nanoseconds: 500_000_000 }));
    }
}
