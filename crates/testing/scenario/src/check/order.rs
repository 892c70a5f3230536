//! Containers start in their order: whatever comes before one of them has ended well in the same sandbox, or was started there if it
//! is a sidecar.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Fact, History};
use crate::shape::Shape;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut shapes: BTreeMap<&str, &Shape> = BTreeMap::new();
    let mut started: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut done: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Wanted(pod, shape) => drop(shapes.insert(pod, shape)),
            Fact::Ended(of, 0, _) => drop(done.insert((&of.sandbox, &of.name))),
            Fact::Started(of) => {
                started.insert((&of.sandbox, &of.name));
                let Some(shape) = shapes.get(of.pod.as_str()) else { continue };
                let before = shape.init.iter().take_while(|part| part.name != of.name);
                for part in before {
                    let seen = if part.sidecar { &started } else { &done };
                    if !seen.contains(&(of.sandbox.as_str(), part.name.as_str())) {
                        found.push((*at, format!("{} starts before {} is done", of.label(), part.name)));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{history, of, part, shape, wanted};
    use crate::history::Fact;
    use crate::shape::{Part, Shape};

    #[test]
    fn init_containers_end_and_sidecars_start_before_what_follows() {
        let sidecar = Part { sidecar: true, ..part("side") };
        let shape = Shape { init: vec![sidecar, part("i")], ..shape() };
        let start = |name| Fact::Started(of(name, 0));
        let end = |name, code| Fact::Ended(of(name, 0), code, Cause::Itself);
        let begin = (0, wanted(shape));
        let fine = [begin.clone(), (1, start("side")), (2, start("i")), (3, end("i", 0)), (4, start("a"))];
        assert!(super::check(&history(fine)).is_empty());
        let failed = [begin.clone(), (1, start("side")), (2, start("i")), (3, end("i", 1)), (4, start("a"))];
        assert_eq!(super::check(&history(failed)).len(), 1);
        let alone = [begin, (2, start("i")), (3, end("i", 0)), (4, start("a"))];
        assert_eq!(super::check(&history(alone)).len(), 2);
    }
}
