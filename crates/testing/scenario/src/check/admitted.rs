//! The pods that have a sandbox never request more than the node has to give.
//!
//! Two kinds are not counted, as with a kubelet, which counts what its sources have told it so far (`GetActivePods`): pods that are still
//! being stopped and that no source has (their manifest is gone or was written anew, or they were deleted by force); and pods of an
//! earlier life of the daemon, which learns of them one source after the other and does not wait for the API server.

use std::collections::BTreeMap;

use crate::history::{Fact, History};

/// Processor of the simulated machine, in thousandths of a core.
const ALLOCATABLE_M: u32 = 4000;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
    let mut here: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Wanted(pod, shape) => drop(sizes.insert(pod, shape.cpu_m())),
            Fact::Made(of, _) if of.name.is_empty() => {
                here.insert(&of.sandbox, (&of.pod, sizes.get(of.pod.as_str()).copied().unwrap_or(0)));
                let sum: u32 = here.values().map(|(_, size)| size).sum();
                if sum > ALLOCATABLE_M {
                    found.push((*at, format!("with {} pods request {sum}m: {here:?}", of.pod)));
                }
            }
            Fact::SourceGone(pod) => here.retain(|_, (of, _)| of != pod),
            Fact::Up => here.clear(),
            Fact::Ended(of, ..) | Fact::Removed(of) if of.name.is_empty() => drop(here.remove(of.sandbox.as_str())),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{history, part, shape};
    use crate::history::{Fact, Of};
    use crate::shape::{Part, Shape};

    #[test]
    fn what_has_a_sandbox_fits() {
        let big = |name: &str| {
            let shape = Shape { containers: vec![Part { cpu_m: 2500, ..part("a") }], ..shape() };
            Fact::Wanted(name.to_owned(), Box::new(shape))
        };
        let of = |name: &str| Of { pod: name.to_owned(), sandbox: format!("s-{name}"), ..Of::default() };
        let made = |name| Fact::Made(of(name), true);
        let both = [(0, big("p")), (0, big("q")), (1, made("p")), (2, made("q"))];
        assert_eq!(super::check(&history(both)).len(), 1);
        let end = Fact::Ended(of("p"), 0, Cause::Term);
        let turns = [(0, big("p")), (0, big("q")), (1, made("p")), (2, end), (3, made("q"))];
        assert!(super::check(&history(turns)).is_empty());
        let gone = Fact::SourceGone("p".to_owned());
        let leaves = [(0, big("p")), (0, big("q")), (1, made("p")), (2, gone), (3, made("q"))];
        assert!(super::check(&history(leaves)).is_empty());
        let restart = [(0, big("p")), (0, big("q")), (1, made("p")), (2, Fact::Up), (3, made("q"))];
        assert!(super::check(&history(restart)).is_empty());
    }
}
