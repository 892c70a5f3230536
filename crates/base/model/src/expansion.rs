//! `$(NAME)` references of pods (pod-lifecycle 5.5): one pass, no recursion.

/// Replaces each `$(NAME)` that `lookup` knows; unknown ones stay as they are. `$$` is one `$`, and everything else after
/// a `$` is literal.
pub fn expand(text: &str, mut lookup: impl FnMut(&str) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push(b'$');
            rest = tail;
        } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|r| r.split_once(')')) {
            match lookup(name) {
                Some(value) => out.extend_from_slice(&value),
                None => out.extend_from_slice(&rest.as_bytes()[at..rest.len() - tail.len()]),
            }
            rest = tail;
        } else {
            out.push(b'$');
            rest = after;
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out
}
