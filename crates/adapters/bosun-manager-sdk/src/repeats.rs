//! A call that comes twice is handled once.

use std::collections::VecDeque;

use futures::FutureExt;
use futures::future::Shared;
use seam::Asked;

/// Calls that are remembered.
const KEPT: usize = 256;

pub(crate) type Answering = Shared<Asked>;

/// The latest calls by their keys, with what becomes or became of them.
#[derive(Default)]
pub(crate) struct Repeats(VecDeque<(String, Answering)>);

impl Repeats {
    /// What becomes of a call: what became of the one with this key, else what `ask` begins.
    pub(crate) fn once(&mut self, key: String, ask: impl FnOnce() -> Asked) -> Answering {
        if key.is_empty() {
            return ask().shared();
        }
        if let Some((_, known)) = self.0.iter().find(|(k, _)| *k == key) {
            return known.clone();
        }
        let answering = ask().shared();
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((key, answering.clone()));
        answering
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_call_with_a_known_key_is_answered_as_the_first_one() {
        let (mut repeats, asked) = (Repeats::default(), Cell::new(0_u32));
        let mut ask = |key: &str| {
            let ask = || {
                asked.set(asked.get() + 1);
                let number = asked.get().to_string().into_bytes();
                async move { Ok(number) }.boxed()
            };
            let answer = repeats.once(key.to_owned(), ask).now_or_never().unwrap().unwrap();
            String::from_utf8(answer).unwrap()
        };
        assert_eq!([ask("a"), ask("b"), ask("a"), ask(""), ask("")], ["1", "2", "1", "3", "4"]);
        // As many more as make "a" one too many.
        for n in 0..KEPT - 1 {
            assert_eq!(ask(&n.to_string()), (n + 5).to_string());
        }
        assert_eq!(ask("b"), "2");
        assert_ne!(ask("a"), "1", "the oldest is forgotten");
    }
}
