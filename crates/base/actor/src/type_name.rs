//! Names of types for people.

/// A type name without its module path: `a::b::Foo<c::Bar>` is `Foo<Bar>`.
pub(crate) fn short(full: &str) -> String {
    let mut out = String::with_capacity(full.len());
    let mut word = String::new();
    for ch in full.chars() {
        if ch.is_alphanumeric() || ch == '_' || ch == '{' || ch == '}' {
            word.push(ch);
        } else if ch == ':' {
            word.clear();
        } else {
            out.push_str(&word);
            word.clear();
            out.push(ch);
        }
    }
    out + &word
}
