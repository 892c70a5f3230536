use std::time::Duration;

use model::node::Pressure;

use super::*;
use crate::{Ledger, is_met, is_relieved, with_allocatable, would_relieve};

const PERIOD: Duration = Duration::from_secs(300);

#[test]
fn a_threshold_is_crossed_strictly_below_it() {
    let disk = threshold(Signal::NodefsAvailable, Amount::percent(25.0), None);
    let memory = threshold(Signal::MemoryAvailable, amount("100Mi"), None);
    let table = [
        ("exactly a quarter", disk, seen(Signal::NodefsAvailable, 25 * GI, 100 * GI), false),
        ("one byte less", disk, seen(Signal::NodefsAvailable, 25 * GI - 1, 100 * GI), true),
        ("exactly the amount", memory, seen(Signal::MemoryAvailable, 100 * MI, GI), false),
        ("less than the amount", memory, seen(Signal::MemoryAvailable, 99 * MI, GI), true),
        ("not observed", memory, seen(Signal::NodefsAvailable, 0, GI), false),
    ];
    for (what, threshold, seen, expected) in table {
        assert_eq!(is_met(&threshold, &seen, false), expected, "{what}");
    }
}

/// Edge 47.
#[test]
fn a_condition_outlives_its_cause_by_the_transition_period() {
    let disk = [threshold(Signal::NodefsInodesFree, amount("1000"), None)];
    let (low, enough) = (seen(Signal::NodefsInodesFree, 999, 10_000), seen(Signal::NodefsInodesFree, 5000, 10_000));
    let at = Duration::from_secs;
    let mut p = Ledger::default();
    assert_eq!(p.observe(&disk, &enough, at(0), PERIOD).pressures, []);
    assert_eq!(p.observe(&disk, &low, at(10), PERIOD).pressures, [Pressure::Disk]);
    assert_eq!(p.observe(&disk, &enough, at(309), PERIOD).pressures, [Pressure::Disk]);
    assert_eq!(p.observe(&disk, &enough, at(310), PERIOD).pressures, []);
}

#[test]
fn it_tells_since_when_a_threshold_is_crossed_and_until_when_a_condition_holds() {
    let at = Duration::from_secs;
    let hard = threshold(Signal::MemoryAvailable, amount("1Gi"), None);
    let soft = Threshold { grace: at(30), below: amount("2Gi"), ..hard };
    let with = |available| seen(Signal::MemoryAvailable, available, 8 * GI);
    let mut p = Ledger::default();
    p.recover([Pressure::Disk], at(0));
    let told = |p: &Ledger, now| {
        let of = |t| (p.crossed_since(t), p.is_due(t));
        (of(&hard), of(&soft), p.conditions(at(now), PERIOD).collect::<Vec<_>>())
    };
    let no = (None, false);
    let disk = (Pressure::Disk, Some(at(300)));
    p.observe(&[hard, soft], &with(3 * GI), at(5), PERIOD);
    assert_eq!(told(&p, 5), (no, no, vec![disk]));
    p.observe(&[hard, soft], &with(GI), at(10), PERIOD);
    assert_eq!(told(&p, 10), (no, (Some(at(10)), false), vec![(Pressure::Memory, None), disk]));
    p.observe(&[hard, soft], &with(0), at(40), PERIOD);
    let both = ((Some(at(40)), true), (Some(at(10)), true));
    assert_eq!(told(&p, 40), (both.0, both.1, vec![(Pressure::Memory, None), disk]));
    p.observe(&[hard, soft], &with(3 * GI), at(50), PERIOD);
    assert_eq!(told(&p, 50), (no, no, vec![(Pressure::Memory, Some(at(340))), disk]));
    p.observe(&[hard, soft], &with(3 * GI), at(300), PERIOD);
    assert_eq!(told(&p, 300).2, [(Pressure::Memory, Some(at(340)))]);
}

#[test]
fn amounts_print_as_they_are_configured() {
    let table = [
        (amount("100Mi"), "100Mi"),
        (amount("1000"), "1k"),
        (Amount::percent(10.0), "10%"),
        (Amount::percent(15.0), "15%"),
        (Amount::percent(0.5), "0.5%"),
        (Amount::percent(33.3), "33.3%"),
    ];
    for (amount, text) in table {
        assert_eq!(amount.to_string(), text);
    }
}

#[test]
fn with_a_minimum_reclaim_pressure_lasts_until_so_much_more_is_there() {
    let memory = [threshold(Signal::MemoryAvailable, amount("1Gi"), Some(amount("500Mi")))];
    let with = |available| seen(Signal::MemoryAvailable, available, 8 * GI);
    let mut p = Ledger::default();
    let none = Duration::ZERO;
    assert_eq!(p.observe(&memory, &with(1200 * MI), none, none).pressures, [], "not crossed before");
    assert_eq!(p.observe(&memory, &with(GI - 1), none, none).pressures, [Pressure::Memory]);
    assert_eq!(p.observe(&memory, &with(1524 * MI - 1), Duration::from_secs(1), none).pressures, [Pressure::Memory]);
    assert_eq!(p.observe(&memory, &with(1524 * MI), Duration::from_secs(2), none).pressures, []);
}

#[test]
fn several_pressures_stand_in_order() {
    let all = [
        threshold(Signal::PidAvailable, amount("10"), None),
        threshold(Signal::AllocatableMemoryAvailable, amount("10"), None),
        threshold(Signal::ImagefsAvailable, amount("10"), None),
    ];
    let low = Observed { available: 0, capacity: 100 };
    let seen: Signals = all.iter().map(|t| (t.signal, low)).collect();
    let mut p = Ledger::default();
    assert_eq!(
        p.observe(&all, &seen, Duration::ZERO, PERIOD).pressures,
        [Pressure::Memory, Pressure::Disk, Pressure::Pid]
    );
}

#[test]
fn every_signal_has_its_name() {
    for name in ["memory.available", "nodefs.inodesFree", "pid.available", "allocatableMemory.available"] {
        assert_eq!(Signal::parse(name).unwrap().as_str(), name);
    }
    assert_eq!(Signal::parse("memory.free"), None);
}

/// Edge 46.
#[test]
fn a_soft_threshold_shows_at_once_and_is_due_after_its_grace_without_a_break() {
    let soft =
        [Threshold { grace: Duration::from_secs(60), ..threshold(Signal::MemoryAvailable, amount("1Gi"), None) }];
    let (low, enough) = (seen(Signal::MemoryAvailable, GI - 1, 8 * GI), seen(Signal::MemoryAvailable, GI, 8 * GI));
    let mut ledger = Ledger::default();
    let table = [
        (0, &low, true, false),
        (59, &low, true, false),
        (60, &low, true, true),
        (70, &enough, true, false),
        (80, &low, true, false),
        (139, &low, true, false),
        (140, &low, true, true),
    ];
    for (at, seen, shows, due) in table {
        let verdict = ledger.observe(&soft, seen, Duration::from_secs(at), PERIOD);
        assert_eq!((!verdict.pressures.is_empty(), !verdict.due.is_empty()), (shows, due), "{at} s");
    }
}

#[test]
fn memory_is_looked_after_first_and_a_hard_threshold_before_a_soft_one() {
    let hard = |signal| threshold(signal, amount("10"), None);
    let soft = Threshold { grace: Duration::from_secs(1), ..hard(Signal::MemoryAvailable) };
    let all = [hard(Signal::PidAvailable), hard(Signal::NodefsInodesFree), soft, hard(Signal::MemoryAvailable)];
    let low = Observed { available: 0, capacity: 100 };
    let seen: Signals = all.iter().map(|t| (t.signal, low)).collect();
    let mut ledger = Ledger::default();
    ledger.observe(&all, &seen, Duration::ZERO, PERIOD);
    let due = ledger.observe(&all, &seen, Duration::from_secs(1), PERIOD).due;
    assert_eq!(due, [all[3], all[2], all[1], all[0]]);
}

#[test]
fn what_another_generation_observed_lasts_for_the_transition_period() {
    let mut ledger = Ledger::default();
    let at = Duration::from_secs;
    ledger.recover([Pressure::Pid], at(5));
    assert_eq!(ledger.observe(&[], &Signals::new(), at(304), PERIOD).pressures, [Pressure::Pid]);
    assert_eq!(ledger.observe(&[], &Signals::new(), at(305), PERIOD).pressures, []);
}

#[test]
fn pods_together_have_the_hard_threshold_of_the_machines_memory() {
    let soft = Threshold { grace: PERIOD, ..threshold(Signal::MemoryAvailable, amount("1Gi"), None) };
    let hard = threshold(Signal::MemoryAvailable, amount("100Mi"), Some(amount("1Mi")));
    let disk = threshold(Signal::NodefsAvailable, amount("1Gi"), None);
    let derived = Threshold { signal: Signal::AllocatableMemoryAvailable, ..hard };
    assert_eq!(with_allocatable(vec![soft, hard, disk]), [soft, hard, disk, derived]);
    assert_eq!(with_allocatable(vec![soft, disk]), [soft, disk]);
}

#[test]
fn relief_counts_the_minimum_reclaim_and_passes_over_what_is_not_observed() {
    let all = [
        threshold(Signal::NodefsAvailable, amount("1Gi"), Some(amount("1Gi"))),
        threshold(Signal::PidAvailable, amount("10"), None),
    ];
    assert!(is_relieved(&all, &seen(Signal::NodefsAvailable, 2 * GI, 8 * GI)));
    assert!(!is_relieved(&all, &seen(Signal::NodefsAvailable, 2 * GI - 1, 8 * GI)));
}

#[test]
fn what_comes_free_may_be_enough_for_all_of_them() {
    let all = [
        threshold(Signal::MemoryAvailable, amount("1Gi"), Some(amount("1Gi"))),
        threshold(Signal::AllocatableMemoryAvailable, amount("1Gi"), None),
    ];
    let mut low = seen(Signal::MemoryAvailable, GI / 2, 8 * GI);
    let table = [(0, false), (GI, false), (3 * GI / 2 - 1, false), (3 * GI / 2, true), (i64::MAX, true)];
    for (freed, expected) in table {
        assert_eq!(would_relieve(&all, &low, u64::try_from(freed).expect("not negative")), expected, "{freed}");
    }
    low.extend(seen(Signal::AllocatableMemoryAvailable, -GI, 8 * GI));
    assert!(
        !would_relieve(&all, &low, (2 * GI - 1).unsigned_abs()) && would_relieve(&all, &low, (2 * GI).unsigned_abs())
    );
    assert!(would_relieve(&all, &low, u64::MAX));
}
