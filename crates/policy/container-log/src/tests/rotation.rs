use std::collections::BTreeSet;

use jiff::tz::{Offset, TimeZone};
use model::Timestamp;

use crate::rotation::{Need, need, plan, rotated_name};

#[test]
fn a_log_is_rotated_from_the_limit_on() {
    let rows = [
        (None, Need::Reopen),
        (Some(0), Need::Nothing),
        (Some(99), Need::Nothing),
        (Some(100), Need::Rotate),
        (Some(101), Need::Rotate),
    ];
    for (size, expected) in rows {
        assert_eq!(need(size, 100), expected, "{size:?}");
    }
}

#[test]
fn plans_what_becomes_of_older_files() {
    type Row<'a> = (&'a str, &'a [&'a str], u32, &'a [&'a str], &'a [&'a str]);
    let rows: &[Row<'_>] = &[
        ("nothing yet", &["0.log"], 5, &[], &[]),
        ("the newest is compressed a round later", &["0.log", "0.log.1"], 5, &[], &["0.log.1"]),
        ("what is compressed stays", &["0.log", "0.log.1.gz", "0.log.2.gz", "0.log.3"], 5, &[], &["0.log.3"]),
        (
            "the oldest goes",
            &["0.log", "0.log.1.gz", "0.log.2.gz", "0.log.3.gz", "0.log.4"],
            5,
            &["0.log.1.gz"],
            &["0.log.4"],
        ),
        ("with two files none is kept", &["0.log", "0.log.1", "0.log.2.gz"], 2, &["0.log.1", "0.log.2.gz"], &[]),
        ("half a compression", &["0.log.1", "0.log.1.tmp"], 5, &["0.log.1.tmp"], &["0.log.1"]),
        ("a compression without its last step", &["0.log.1", "0.log.1.gz"], 5, &["0.log.1"], &[]),
        ("logs of others", &["0.log", "1.log", "1.log.1", "0.logs.1", "0.log.", "x.0.log.1"], 2, &[], &[]),
    ];
    for (name, listing, max_files, remove, compress) in rows {
        let listing: BTreeSet<String> = listing.iter().map(|n| (*n).to_owned()).collect();
        let plan = plan("0.log", &listing, *max_files);
        assert_eq!(plan.remove, *remove, "{name}: removed");
        assert_eq!(plan.compress, *compress, "{name}: compressed");
    }
}

#[test]
fn the_name_tells_the_local_time() {
    let now = Timestamp(1_767_225_599_900_000_000);
    assert_eq!(rotated_name("0.log", now, &TimeZone::UTC), "0.log.20251231-235959");
    let east = TimeZone::fixed(Offset::constant(2));
    assert_eq!(rotated_name("0.log", now, &east), "0.log.20260101-015959");
}
