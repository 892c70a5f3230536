use model::PodUid;
use proptest::prelude::*;

use super::*;

fn pod(name: &str, container: &str) -> EventObject {
    EventObject::Pod {
        namespace: "ns".into(),
        name: name.into(),
        uid: PodUid::from(name),
        field_path: if container.is_empty() { String::new() } else { format!("spec.containers{{{container}}}") },
    }
}

fn event(object: &EventObject, reason: &'static str, message: &str) -> NodeEvent {
    NodeEvent { kind: EventType::Warning, reason: reason.into(), message: message.into(), object: object.clone() }
}

fn wall(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + i64::try_from(seconds).expect("a small number"))
}

fn at(seconds: u64) -> Moment {
    Moment { wall: wall(seconds), uptime: Duration::from_secs(seconds) }
}

fn shown(verdict: Verdict) -> EventEntry {
    match verdict {
        Verdict::Show(entry) => entry,
        Verdict::Drop => panic!("dropped"),
    }
}

#[test]
fn identical_events_are_one_line_with_a_count() {
    let mut c = Correlator::default();
    let e = event(&pod("p", "app"), "BackOff", "back-off");
    let first = shown(c.judge(&e, at(0)));
    assert_eq!((first.count, first.first, first.last), (1, wall(0), wall(0)));
    shown(c.judge(&e, at(5)));
    let third = shown(c.judge(&e, at(9)));
    assert_eq!((third.count, third.first, third.last), (3, wall(0), wall(9)));
    assert_eq!(key_of(&first), key_of(&third));
}

#[test]
fn lines_differ_by_kind_reason_message_object_and_container() {
    let mut c = Correlator::default();
    let base = event(&pod("p", "a"), "Failed", "x");
    let others = [
        NodeEvent { kind: EventType::Normal, ..base.clone() },
        NodeEvent { reason: "BackOff".into(), ..base.clone() },
        NodeEvent { message: "y".into(), ..base.clone() },
        NodeEvent { object: pod("q", "a"), ..base.clone() },
        NodeEvent { object: pod("p", "b"), ..base.clone() },
        NodeEvent { object: EventObject::Node, ..base.clone() },
    ];
    shown(c.judge(&base, at(0)));
    for (n, other) in others.iter().enumerate() {
        assert_eq!(shown(c.judge(other, at(0))).count, 1, "row {n}");
    }
}

#[test]
fn edge_64_the_eleventh_text_of_one_reason_is_combined() {
    let mut c = Correlator::default();
    let p = pod("p", "");
    for n in 1..=10 {
        assert_eq!(shown(c.judge(&event(&p, "FailedMount", &format!("m{n}")), at(n))).message, format!("m{n}"));
    }
    let eleventh = shown(c.judge(&event(&p, "FailedMount", "m11"), at(11)));
    assert_eq!(eleventh.message, "(combined from similar events): m11");
    assert_eq!(eleventh.count, 1);
    let twelfth = shown(c.judge(&event(&p, "FailedMount", "m12"), at(12)));
    assert_eq!((twelfth.message.as_str(), twelfth.count), ("(combined from similar events): m12", 2));
    assert_eq!(key_of(&eleventh), key_of(&twelfth), "one line");
    assert_eq!(shown(c.judge(&event(&p, "FailedMount", "m3"), at(13))).count, 2, "a known text keeps its own line");
    assert_eq!(shown(c.judge(&event(&p, "FailedSync", "s"), at(14))).message, "s", "another reason is not combined");
}

#[test]
fn containers_of_a_pod_are_combined_together() {
    let mut c = Correlator::default();
    for n in 0..10 {
        shown(c.judge(&event(&pod("p", "a"), "Unhealthy", &format!("m{n}")), at(0)));
    }
    let b = shown(c.judge(&event(&pod("p", "b"), "Unhealthy", "other"), at(0)));
    let a = shown(c.judge(&event(&pod("p", "a"), "Unhealthy", "third"), at(0)));
    assert!(b.message.starts_with("(combined"));
    assert_eq!((key_of(&a), a.count), (key_of(&b), 2));
}

#[test]
fn ten_quiet_minutes_end_the_combining() {
    let combined = |pause: u64| {
        let mut c = Correlator::default();
        for n in 0..11 {
            shown(c.judge(&event(&pod("p", ""), "FailedMount", &format!("m{n}")), at(0)));
        }
        shown(c.judge(&event(&pod("p", ""), "FailedMount", "new"), at(pause))).message.starts_with("(combined")
    };
    assert!(combined(600));
    assert!(!combined(601));
}

#[test]
fn edge_63_twenty_five_pass_then_one_per_five_minutes() {
    let mut c = Correlator::default();
    let e = event(&pod("p", "app"), "Unhealthy", "probe failed");
    let passed = (0..30).filter(|n| c.judge(&e, at(2 * n)) != Verdict::Drop).count();
    assert_eq!(passed, 25);
    assert_eq!(c.judge(&e, at(299)), Verdict::Drop);
    assert_eq!(shown(c.judge(&e, at(300))).count, 32, "what was dropped is counted");
    assert_eq!(c.judge(&e, at(301)), Verdict::Drop);
    assert_ne!(c.judge(&e, at(600)), Verdict::Drop);
}

#[test]
fn the_spam_filter_is_per_object_not_per_container_or_reason() {
    let mut c = Correlator::default();
    for n in 0..25 {
        let reason = if n % 2 == 0 { "Unhealthy" } else { "BackOff" };
        assert_ne!(c.judge(&event(&pod("p", "a"), reason, "x"), at(0)), Verdict::Drop);
    }
    assert_eq!(c.judge(&event(&pod("p", "b"), "Failed", "y"), at(0)), Verdict::Drop);
    assert_ne!(c.judge(&event(&pod("q", "a"), "Failed", "y"), at(0)), Verdict::Drop);
    assert_ne!(c.judge(&event(&EventObject::Node, "Failed", "y"), at(0)), Verdict::Drop);
}

#[test]
fn who_serves_a_role_is_told_also_of_a_node_that_said_too_much() {
    let mut c = Correlator::default();
    for _ in 0..40 {
        c.judge(&event(&EventObject::Node, "MissingClusterDNS", "x"), at(0));
    }
    assert_eq!(c.judge(&event(&EventObject::Node, "Rebooted", "y"), at(0)), Verdict::Drop);
    let e = event(&EventObject::Node, "ManagerReplaced", "ProbeManager is served by another one");
    assert_eq!((0..40).filter(|_| c.judge(&e, at(0)) != Verdict::Drop).count(), 25, "its own credit is no larger");
}

#[test]
fn a_clock_that_is_set_neither_earns_nor_costs() {
    for set_to in [0, 100_000] {
        let mut c = Correlator::default();
        let e = event(&pod("p", ""), "Failed", "x");
        for _ in 0..25 {
            c.judge(&e, at(10_000));
        }
        let later = |seconds| Moment { wall: wall(set_to + seconds), ..at(10_000 + seconds) };
        assert_eq!(c.judge(&e, later(0)), Verdict::Drop);
        assert_eq!(c.judge(&e, later(299)), Verdict::Drop);
        let line = shown(c.judge(&e, later(300)));
        assert_eq!((line.count, line.last), (28, wall(set_to + 300)), "people read the wall clock");
    }
}

#[test]
fn who_takes_the_place_of_another_goes_on_counting() {
    let e = event(&pod("p", ""), "Failed", "x");
    let (mut before, mut after) = (Correlator::default(), Correlator::default());
    before.judge(&e, at(0));
    let line = shown(before.judge(&e, at(1)));
    for _ in 0..2 {
        after.recall([&line]);
    }
    let next = shown(after.judge(&e, at(2)));
    assert_eq!((next.count, next.first), (3, wall(0)));
    after.recall([&line]);
    assert_eq!(shown(after.judge(&e, at(3))).count, 4, "what it counted itself stands");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_object_shows_more_than_its_credit(gaps in prop::collection::vec(0_u64..400, 1..200)) {
        let mut c = Correlator::default();
        let e = event(&pod("p", ""), "Failed", "x");
        let (mut now, mut passed) = (0, 0);
        for gap in gaps {
            now += gap;
            passed += u64::from(c.judge(&e, at(now)) != Verdict::Drop);
            prop_assert!(passed <= 25 + now / 300);
        }
    }

    #[test]
    fn shown_counts_never_go_back(texts in prop::collection::vec((0_u8..14, 0_u64..700), 1..120)) {
        let mut c = Correlator::default();
        let mut last = std::collections::BTreeMap::new();
        let mut now = 0;
        for (text, gap) in texts {
            now += gap;
            if let Verdict::Show(line) = c.judge(&event(&pod("p", ""), "Failed", &format!("m{text}")), at(now)) {
                let before = last.insert(key_of(&line), line.count);
                prop_assert!(before.is_none_or(|b| b < line.count));
            }
        }
    }
}
