use std::time::Duration;

use super::*;
use crate::{LONGEST, SHORTEST, UNWARNED, next_look};

#[test]
fn the_faster_memory_goes_the_sooner_is_the_next_look() {
    let all = [
        threshold(Signal::MemoryAvailable, amount("1Gi"), None),
        threshold(Signal::NodefsAvailable, amount("1Gi"), None),
    ];
    let at = |gi: i64| seen(Signal::MemoryAvailable, gi * GI, 64 * GI);
    let s = Duration::from_secs;
    let table = [
        ("nothing to compare with", None, at(2), LONGEST),
        ("steady", Some((s(10), at(32))), at(32), LONGEST),
        ("more than before", Some((s(10), at(31))), at(32), LONGEST),
        ("slowly", Some((s(10), at(33))), at(32), LONGEST),
        ("10 Gi in 10 s, 10 left", Some((s(10), at(21))), at(11), s(5)),
        ("1 Gi in 1 s, 1 left", Some((s(1), at(3))), at(2), Duration::from_millis(500)),
        ("at once", Some((s(1), at(60))), at(2), SHORTEST),
        ("crossed already: that is another matter", Some((s(1), at(60))), at(1), LONGEST),
        ("not observed before", Some((s(1), Signals::new())), at(2), LONGEST),
    ];
    for (what, before, now, expected) in table {
        let before = before.as_ref().map(|(ago, seen)| (*ago, seen));
        assert_eq!(next_look(&all, before, &now, LONGEST), expected, "{what}");
    }
    let disk = |gi: i64| seen(Signal::NodefsAvailable, gi * GI, 64 * GI);
    assert_eq!(next_look(&all, Some((s(1), &disk(9))), &disk(2), LONGEST), LONGEST, "a disk is not gone in a second");
    assert_eq!(next_look(&all, None, &at(2), UNWARNED), UNWARNED);
    assert_eq!(next_look(&all, Some((s(10), &at(21))), &at(11), UNWARNED), UNWARNED, "no later than usual");
}
