//! Query strings as Go reads them.

/// Percent-decodes; a broken escape gives `None`. `plus`: a plus sign is a space.
pub(crate) fn decode(text: &str, plus: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                out.push(high << 4 | low);
            }
            b'+' if plus => out.push(b' '),
            b => out.push(b),
        }
    }
    Some(out)
}

/// Names and values in order. Pairs that are no query (a broken escape, a semicolon, no UTF-8) are left out.
pub(crate) fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    let text = |part: &str| String::from_utf8(decode(part, true)?).ok();
    query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        .filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((text(name)?, text(value)?))
        })
        .collect()
}

/// The first value of a name.
pub(crate) fn first<'q>(pairs: &'q [(String, String)], name: &str) -> Option<&'q str> {
    pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}
