//! What of a span its children must know, in this process and in others.

use std::num::{NonZeroU64, NonZeroU128};

/// Which span of which trace, and whether the trace is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The trace.
    pub trace: NonZeroU128,
    /// The span in it.
    pub span: NonZeroU64,
    /// It is recorded.
    pub sampled: bool,
}

impl Context {
    /// Reads a `traceparent` (W3C Trace Context, level 1). `None`: it is none, and counts as absent.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let version = u8::try_from(hex(version, 2)?).ok()?;
        // What later versions put behind is for those who know them.
        if version == 0xff || version == 0 && parts.next().is_some() {
            return None;
        }
        Some(Self {
            trace: NonZeroU128::new(hex(trace, 32)?)?,
            span: NonZeroU64::new(u64::try_from(hex(span, 16)?).ok()?)?,
            sampled: hex(flags, 2)? & 1 == 1,
        })
    }

    /// As a `traceparent` header.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Exactly so many lower-case digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let fine = text.len() == digits && text.bytes().all(is_digit);
    fine.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_is_read_and_written_as_the_standard_says() {
        let context = Context::parse(GIVEN).unwrap();
        assert_eq!((context.traceparent().as_str(), context.sampled), (GIVEN, true));
        let flags = |flags: &str| Context::parse(&format!("{}{flags}", &GIVEN[..53])).map(|c| c.sampled);
        assert_eq!((flags("00"), flags("03"), flags("0")), (Some(false), Some(true), None));
        let later = format!("01{}-more", &GIVEN[2..]);
        assert!(Context::parse(&later).is_some(), "a later version may say more");
        for broken in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::parse(broken), None, "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn what_strangers_write_is_read_or_refused(text in "\\PC{0,70}") {
            if let Some(context) = Context::parse(&text) {
                prop_assert_eq!(Context::parse(&context.traceparent()), Some(context));
            }
        }
    }
}
