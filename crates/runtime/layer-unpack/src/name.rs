//! Names of entries: which are taken, and what they say.

/// Prefix of a whiteout: the rest of the name is what is gone.
const WHITEOUT: &[u8] = b".wh.";
/// Prefix of aufs' own files, and of the opaque mark.
const META: &[u8] = b".wh..wh.";
/// Hides all that lower layers have in this directory.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What the last part of a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base<'a> {
    /// An entry like any other.
    Plain(&'a [u8]),
    /// This is gone.
    Whiteout(&'a [u8]),
    /// The directory hides what is below it.
    Opaque,
    /// Book-keeping of aufs, which means nothing here.
    Meta,
}

/// The parts of a path, without empty ones and `.`; none: the root itself. A leading slash means the root of the layer: builders such as ko write
/// names so.
///
/// # Errors
/// Why no entry may have this name.
pub(crate) fn parts(name: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    if name.contains(&0) {
        return Err("its name has a NUL");
    }
    if name.len() > 4096 {
        return Err("its name is longer than 4096 bytes");
    }
    let parts: Vec<&[u8]> = name.split(|b| *b == b'/').filter(|p| !p.is_empty() && *p != b".").collect();
    if parts.iter().any(|p| *p == b"..") {
        return Err("its name leads upwards (..)");
    }
    Ok(parts)
}

/// # Errors
/// Why no whiteout may have this name.
pub(crate) fn base(last: &[u8]) -> Result<Base<'_>, &'static str> {
    if last == OPAQUE {
        return Ok(Base::Opaque);
    }
    if last.starts_with(META) {
        return Ok(Base::Meta);
    }
    match last.strip_prefix(WHITEOUT) {
        None => Ok(Base::Plain(last)),
        Some(b"") => Err("a whiteout of nothing"),
        Some(b"." | b"..") => Err("a whiteout that leads upwards"),
        Some(gone) => Ok(Base::Whiteout(gone)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = Result<&'static [&'static [u8]], &'static str>;

    #[test]
    fn names_lead_to_places_beneath_the_root_or_are_refused() {
        let rows: &[(&[u8], Parts)] = &[
            (b"a/b", Ok(&[b"a", b"b"])),
            (b"./a//b/", Ok(&[b"a", b"b"])),
            (b"/ko-app/x", Ok(&[b"ko-app", b"x"])),
            (b"./", Ok(&[])),
            (b"", Ok(&[])),
            (b"..a/b..", Ok(&[b"..a", b"b.."])),
            (b"../a", Err("its name leads upwards (..)")),
            (b"a/../b", Err("its name leads upwards (..)")),
            (b"a/..", Err("its name leads upwards (..)")),
            (b"a\0b", Err("its name has a NUL")),
        ];
        for (name, want) in rows {
            assert_eq!(parts(name).as_deref(), want.as_deref(), "{name:?}");
        }
        assert!(parts(&[b'a'; 5000]).is_err());
    }

    #[test]
    fn whiteouts_are_told_from_other_entries() {
        let rows: &[(&[u8], Result<Base, &str>)] = &[
            (b"x", Ok(Base::Plain(b"x"))),
            (b".wh", Ok(Base::Plain(b".wh"))),
            (b".wh.x", Ok(Base::Whiteout(b"x"))),
            (b".wh..x", Ok(Base::Whiteout(b".x"))),
            (b".wh..wh..opq", Ok(Base::Opaque)),
            (b".wh..wh.plnk", Ok(Base::Meta)),
            (b".wh.", Err("a whiteout of nothing")),
            (b".wh..", Err("a whiteout that leads upwards")),
            (b".wh...", Err("a whiteout that leads upwards")),
        ];
        for (name, want) in rows {
            assert_eq!(&base(name), want, "{name:?}");
        }
    }
}
