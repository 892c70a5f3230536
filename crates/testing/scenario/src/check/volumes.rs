//! A container keeps the volumes that it was started with, and its pod's cgroup is there before it is.

use crate::history::{Fact, History};

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let text = |(at, fact): &(i64, Fact)| {
        let text = match fact {
            Fact::VolumeLost(of, path) => format!("{} runs and {path} is gone", of.label()),
            Fact::Made(of, false) => format!("{} is made, and the cgroup of its pod is not there", of.label()),
            _ => return None,
        };
        Some((*at, text))
    };
    history.facts.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use crate::check::made::{history, of};
    use crate::history::Fact;

    #[test]
    fn what_is_lost_is_found() {
        let lost = Fact::VolumeLost(of("a", 0), "/v".to_owned());
        assert_eq!(super::check(&history([(1, lost), (2, Fact::Made(of("a", 1), false))])).len(), 2);
        assert!(super::check(&history([(2, Fact::Made(of("a", 1), true))])).is_empty());
    }
}
