//! Names of types for people.

/// A type name without its module path: `a::b::Foo<c::Bar>` is `Foo<Bar>`.
pub(crate) fn short(full: &str) -> String {
    let mut out = String::with_capacity(full.len());
    let mut word = 0;
    for (at, byte) in full.bytes().enumerate() {
        match byte {
            b':' => word = at + 1,
            b'_' | b'{' | b'}' | 0x80.. => {}
            _ if byte.is_ascii_alphanumeric() => {}
            _ => {
                out.push_str(&full[word..=at]);
                word = at + 1;
            }
        }
    }
    out + &full[word..]
}
