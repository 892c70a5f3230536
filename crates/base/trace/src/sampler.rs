//! Which traces are recorded.

use std::num::NonZeroU128;

use crate::context::Context;

/// Whether a trace is recorded: as its parent is; one that begins here, by its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampler {
    /// Of 2^63 ids, so many first are recorded.
    bound: u64,
}

const ALL: u64 = 1 << 63;

impl Sampler {
    /// So many of a million traces that begin here; more than a million are all.
    #[must_use]
    pub fn per_million(rate: u32) -> Self {
        const MILLION: u128 = 1_000_000;
        let bound = u128::from(ALL) * u128::from(rate).min(MILLION) / MILLION;
        Self { bound: u64::try_from(bound).unwrap_or(ALL) }
    }

    /// By the lower half of the id, as other implementations do: all who have the same rate pick the same traces.
    #[must_use]
    pub fn takes(self, trace: NonZeroU128, parent: Option<Context>) -> bool {
        let lower = u64::try_from(trace.get() & u128::from(u64::MAX)).unwrap_or_default();
        parent.map_or(lower >> 1 < self.bound, |p| p.sampled)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    fn parent(sampled: bool) -> Option<Context> {
        Some(Context { trace: NonZeroU128::MIN, span: NonZeroU64::MIN, sampled })
    }

    #[test]
    fn a_trace_that_begins_here_is_taken_by_its_id_and_another_as_its_parent_is() {
        let [least, most] = [NonZeroU128::MIN, NonZeroU128::MAX];
        for (rate, takes_least, takes_most) in [
            (0, false, false),
            (1, true, false),
            (999_999, true, false),
            (1_000_000, true, true),
            (u32::MAX, true, true),
        ] {
            let sampler = Sampler::per_million(rate);
            assert_eq!((sampler.takes(least, None), sampler.takes(most, None)), (takes_least, takes_most), "{rate}");
            assert!(sampler.takes(most, parent(true)) && !sampler.takes(least, parent(false)), "{rate}");
        }
    }

    #[test]
    fn about_as_many_are_taken_as_was_asked_for() {
        let sampler = Sampler::per_million(250_000);
        let mut random = fastrand::Rng::with_seed(1);
        let ids = (0..10_000).filter_map(|_| NonZeroU128::new(random.u128(..)));
        let taken = ids.filter(|id| sampler.takes(*id, None)).count();
        assert!((2_300..2_700).contains(&taken), "{taken}");
    }
}
