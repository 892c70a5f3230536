//! `Range` (RFC 9110), read as Go reads it.

/// A part of the content, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Part {
    pub(super) fn content_range(self, size: u64) -> String {
        format!("bytes {}-{}/{size}", self.start, self.start + self.length.saturating_sub(1))
    }
}

/// Why a header has no parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RangeError {
    /// Not of the form.
    Invalid,
    /// None of the parts lies in the content.
    NoOverlap,
}

/// More parts than any client needs make the whole header void: each costs a seek.
const MOST: usize = 64;

/// The parts that a header asks for; empty: the whole.
pub(super) fn parse(text: &str, size: u64) -> Result<Vec<Part>, RangeError> {
    let list = text.strip_prefix("bytes=").ok_or(RangeError::Invalid)?;
    let mut parts = Vec::new();
    let mut none_fits = false;
    for word in list.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        match part(word, size)? {
            Some(part) => parts.push(part),
            None => none_fits = true,
        }
    }
    if parts.is_empty() && none_fits {
        return Err(RangeError::NoOverlap);
    }
    let sum: u64 = parts.iter().fold(0, |sum, p| sum.saturating_add(p.length));
    if sum > size || parts.len() > MOST {
        // More than the whole is asked for by mistake or by an attack: it gets the whole.
        parts.clear();
    }
    Ok(parts)
}

/// One `a-b`, `a-` or `-n`; `None`: starts behind the end.
fn part(word: &str, size: u64) -> Result<Option<Part>, RangeError> {
    let number = |text: &str| -> Result<u64, RangeError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(RangeError::Invalid);
        }
        text.parse().map_err(|_| RangeError::Invalid)
    };
    let (from, to) = word.split_once('-').ok_or(RangeError::Invalid)?;
    let (from, to) = (from.trim(), to.trim());
    if from.is_empty() {
        let length = number(to)?.min(size);
        return Ok(Some(Part { start: size - length, length }));
    }
    let start = number(from)?;
    if start >= size {
        return Ok(None);
    }
    let last = match to {
        "" => size - 1,
        to => number(to)?.min(size - 1),
    };
    if start > last {
        return Err(RangeError::Invalid);
    }
    Ok(Some(Part { start, length: last - start + 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_go_reads() {
        let p = |start, length| Part { start, length };
        let rows: &[(&str, Result<Vec<Part>, RangeError>)] = &[
            ("bytes=0-4", Ok(vec![p(0, 5)])),
            ("bytes=2-", Ok(vec![p(2, 8)])),
            ("bytes=-3", Ok(vec![p(7, 3)])),
            ("bytes=-30", Ok(vec![p(0, 10)])),
            ("bytes=0-", Ok(vec![p(0, 10)])),
            ("bytes=0-99", Ok(vec![p(0, 10)])),
            ("bytes=0-0, -1", Ok(vec![p(0, 1), p(9, 1)])),
            ("bytes=20-", Err(RangeError::NoOverlap)),
            ("bytes=20-,0-1", Ok(vec![p(0, 2)])),
            ("bytes=0-,0-", Ok(vec![])),
            ("bytes=5-2", Err(RangeError::Invalid)),
            ("bytes=a-", Err(RangeError::Invalid)),
            ("bytes=+1-2", Err(RangeError::Invalid)),
            ("bytes=99999999999999999999999-", Err(RangeError::Invalid)),
            ("lines=0-4", Err(RangeError::Invalid)),
            ("bytes=", Ok(vec![])),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text, 10), *expected, "{text}");
        }
    }

    #[test]
    fn an_empty_file_has_no_parts() {
        assert_eq!(parse("bytes=0-", 0), Err(RangeError::NoOverlap));
        assert_eq!(parse("bytes=-5", 0), Ok(vec![Part { start: 0, length: 0 }]));
    }
}
