use std::time::Duration;

use super::*;
use crate::pressure::{Amount, Observed, Pressures, Signal, Signals, Threshold, is_met, reserved};
use model::node::Pressure;

const GI: i64 = 1 << 30;
const MI: i64 = 1 << 20;
const PERIOD: Duration = Duration::from_secs(300);

fn seen(signal: Signal, available: i64, capacity: i64) -> Signals {
    [(signal, Observed { available, capacity })].into()
}

fn threshold(signal: Signal, below: Amount, min_reclaim: Option<Amount>) -> Threshold {
    Threshold { signal, below, min_reclaim }
}

#[test]
fn a_threshold_is_crossed_strictly_below_it() {
    let disk = threshold(Signal::NodefsAvailable, Amount::percent(25.0), None);
    let memory = threshold(Signal::MemoryAvailable, Amount::Absolute(100 * MI), None);
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

#[test]
fn a_condition_outlives_its_cause_by_the_transition_period() {
    let disk = [threshold(Signal::NodefsInodesFree, Amount::Absolute(1000), None)];
    let (low, enough) = (seen(Signal::NodefsInodesFree, 999, 10_000), seen(Signal::NodefsInodesFree, 5000, 10_000));
    let at = Duration::from_secs;
    let mut p = Pressures::default();
    assert_eq!(p.observe(&disk, &enough, at(0), PERIOD), []);
    assert_eq!(p.observe(&disk, &low, at(10), PERIOD), [Pressure::Disk]);
    assert_eq!(p.observe(&disk, &enough, at(309), PERIOD), [Pressure::Disk]);
    assert_eq!(p.observe(&disk, &enough, at(310), PERIOD), []);
}

#[test]
fn with_a_minimum_reclaim_pressure_lasts_until_so_much_more_is_there() {
    let memory = [threshold(Signal::MemoryAvailable, Amount::Absolute(GI), Some(Amount::Absolute(500 * MI)))];
    let with = |available| seen(Signal::MemoryAvailable, available, 8 * GI);
    let mut p = Pressures::default();
    let none = Duration::ZERO;
    assert_eq!(p.observe(&memory, &with(1200 * MI), none, none), [], "not crossed before");
    assert_eq!(p.observe(&memory, &with(GI - 1), none, none), [Pressure::Memory]);
    assert_eq!(p.observe(&memory, &with(1524 * MI - 1), Duration::from_secs(1), none), [Pressure::Memory]);
    assert_eq!(p.observe(&memory, &with(1524 * MI), Duration::from_secs(2), none), []);
}

#[test]
fn several_pressures_stand_in_order() {
    let all = [
        threshold(Signal::PidAvailable, Amount::Absolute(10), None),
        threshold(Signal::AllocatableMemoryAvailable, Amount::Absolute(10), None),
        threshold(Signal::ImagefsAvailable, Amount::Absolute(10), None),
    ];
    let low = Observed { available: 0, capacity: 100 };
    let seen: Signals = all.iter().map(|t| (t.signal, low)).collect();
    let mut p = Pressures::default();
    assert_eq!(p.observe(&all, &seen, Duration::ZERO, PERIOD), [Pressure::Memory, Pressure::Disk, Pressure::Pid]);
}

#[test]
fn every_signal_has_its_name() {
    for name in ["memory.available", "nodefs.inodesFree", "pid.available", "allocatableMemory.available"] {
        assert_eq!(Signal::parse(name).unwrap().as_str(), name);
    }
    assert_eq!(Signal::parse("memory.free"), None);
}

#[test]
fn hard_thresholds_set_memory_and_disk_aside() {
    let hard = [
        threshold(Signal::MemoryAvailable, Amount::Absolute(100 * MI), None),
        threshold(Signal::NodefsAvailable, Amount::percent(10.0), None),
        threshold(Signal::ImagefsAvailable, Amount::percent(15.0), None),
        threshold(Signal::PidAvailable, Amount::percent(5.0), None),
    ];
    let capacity = amounts(&[("memory", "16Gi"), ("ephemeral-storage", "100Gi")]);
    let expected = amounts(&[("memory", "100Mi"), ("ephemeral-storage", "10737418400")]);
    let got = reserved(&hard, &capacity);
    assert_eq!(got.get("memory"), expected.get("memory"));
    // A tenth in single precision is a little more than a tenth.
    assert_eq!(got["ephemeral-storage"].value(), 10_737_418_400);
}
