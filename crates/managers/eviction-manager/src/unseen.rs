//! What cannot be observed: told when two looks in a row miss it, and again when it is back. A node that starts is not told of.

use std::collections::BTreeMap;

/// What a look could not see, and why.
pub(crate) type Missed = BTreeMap<&'static str, String>;

/// Memory of earlier looks.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    last: Missed,
    told: Missed,
}

/// What there is to say after a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) lost: Missed,
    pub(crate) back: Vec<&'static str>,
}

impl Unseen {
    /// After a look that missed this.
    pub(crate) fn observe(&mut self, missed: Missed) -> News {
        let is_news = |what: &str| self.last.contains_key(what) && !self.told.contains_key(what);
        let lost: Missed = missed.iter().filter(|(what, _)| is_news(what)).map(|(w, why)| (*w, why.clone())).collect();
        let back: Vec<_> = self.told.keys().copied().filter(|what| !missed.contains_key(what)).collect();
        self.told.retain(|what, _| missed.contains_key(what));
        self.told.extend(lost.clone());
        self.last = missed;
        News { lost, back }
    }
}

impl News {
    /// Says it in the log.
    pub(crate) fn tell(&self) {
        for (what, error) in &self.lost {
            tracing::warn!(what, error, "cannot be observed: its eviction thresholds are passed over");
        }
        for what in &self.back {
            tracing::info!(what, "can be observed again: its eviction thresholds count");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_twice_is_told_once_and_once_when_it_is_back() {
        let looks: [(&[&'static str], &[&'static str], &[&'static str]); 8] = [
            (&["a"], &[], &[]),
            (&[], &[], &[]),
            (&["a"], &[], &[]),
            (&["a", "b"], &["a"], &[]),
            (&["a", "b"], &["b"], &[]),
            (&["a", "b"], &[], &[]),
            (&["b"], &[], &["a"]),
            (&["a"], &[], &["b"]),
        ];
        let mut unseen = Unseen::default();
        for (n, (missed, lost, back)) in looks.into_iter().enumerate() {
            let told = unseen.observe(missed.iter().map(|what| (*what, "why".to_owned())).collect());
            assert_eq!(
                (told.lost.into_keys().collect::<Vec<_>>(), told.back),
                (lost.to_vec(), back.to_vec()),
                "look {n}"
            );
        }
    }
}
