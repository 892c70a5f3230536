//! The comparison of whole lives: a recording beside itself differs in nothing, and every change to it is seen.

use golden_compare::align::align;
use golden_compare::documented::{EVERYWHERE, ON_OWN_RUNTIME, Row, matches, rows};
use golden_compare::life::{Life, differences};
use golden_compare::node_object;
use golden_compare::recording::{case, golden_node, names};
use golden_compare::report::{Outcome, Report};
use serde_json::{Value, json};

#[test]
fn a_recording_beside_itself_differs_in_nothing() {
    for name in names() {
        let life = Life::from(&case(&name));
        for minor in [20, 36] {
            assert_eq!(differences(&life, &life, minor), Vec::<String>::new(), "{name} seen through 1.{minor}");
        }
    }
}

/// The same life on another day: other ids, addresses and names.
fn another_day(life: &Life) -> Life {
    let mut text =
        json!([life.calls.iter().map(|c| &c.request).collect::<Vec<_>>(), life.history, life.mirror]).to_string();
    let made: Vec<_> = life.calls.iter().filter_map(|c| c.made.clone()).collect();
    for (i, id) in made.iter().enumerate() {
        text = text.replace(id, &format!("another-id-{i}"));
    }
    text = text.replace(&life.uid, "another-uid").replace("10.90.0.1", "192.0.2.7").replace("10.88.", "10.77.");
    text = text.replace("10.96.0.1\"", "10.55.0.1\"").replace("10.96.0.1:", "10.55.0.1:");
    text = text.replace("kube-api-access-", "kube-api-access-abcde").replace("abcdezd69c", "abcde");
    let Value::Array(parts) = serde_json::from_str(&text).expect("made a moment ago") else {
        unreachable!("a list was written")
    };
    let mut other = life.clone();
    for (call, request) in other.calls.iter_mut().zip(parts[0].as_array().expect("made a moment ago")) {
        call.request = request.clone();
        call.made = call
            .made
            .as_ref()
            .map(|id| format!("another-id-{}", made.iter().position(|m| m == id).expect("made a moment ago")));
    }
    other.history = parts[1].as_array().expect("made a moment ago").clone();
    other.uid = "another-uid".to_owned();
    other
}

#[test]
fn ids_and_addresses_do_not_count() {
    let life = Life::from(&case("plain"));
    assert_eq!(differences(&life, &another_day(&life), 36), Vec::<String>::new());
}

#[test]
fn every_kind_of_change_is_seen() {
    let life = Life::from(&case("plain"));
    let version = |i: usize, change: &dyn Fn(&mut Value)| {
        let mut other = life.clone();
        change(&mut other.history[i]);
        other
    };
    let rows: [(&str, Life, &str); 9] = [
        (
            "a lost call",
            {
                let mut l = life.clone();
                l.calls.retain(|c| c.rpc != "StopContainer");
                l
            },
            "call StopContainer app#0 after StartContainer app#0: recorded, ours not",
        ),
        (
            "a call too many",
            {
                let mut l = life.clone();
                let again = l.calls[3].clone();
                l.calls.insert(4, again);
                l
            },
            "call StopContainer app#0 after StopContainer app#0: ours, not recorded",
        ),
        (
            "a field of a call",
            {
                let mut l = life.clone();
                l.calls[3].request["timeout"] = json!("7");
                l
            },
            "StopContainer app#0.timeout: recorded",
        ),
        (
            "a lost version",
            {
                let mut l = life.clone();
                l.history.remove(3);
                l
            },
            "version [MODIFIED Running",
        ),
        (
            "a field of a status",
            version(3, &|v| v["status"]["containerStatuses"][0]["restartCount"] = json!(1)),
            "version [MODIFIED Running",
        ),
        (
            "a message",
            version(1, &|v| v["status"]["conditions"][2]["message"] = json!("x")),
            ".conditions.Ready.message: recorded",
        ),
        (
            "order of conditions",
            version(3, &|v| v["status"]["conditions"].as_array_mut().unwrap().swap(0, 1)),
            "order of conditions",
        ),
        (
            "an event too many",
            {
                let mut l = life.clone();
                l.events.push(("Failed: x".into(), String::new()));
                l
            },
            "event of the pod: ours, not recorded: Failed: x",
        ),
        (
            "a lost event",
            {
                let mut l = life.clone();
                l.events.remove(1);
                l
            },
            "event of spec.containers{app}: recorded, ours not: Created: Container created",
        ),
    ];
    for (what, other, wanted) in rows {
        let found = differences(&life, &other, 36);
        assert!(found.iter().any(|d| d.contains(wanted)), "{what}: {found:#?}");
    }
}

#[test]
fn a_mirror_pod_counts() {
    let life = Life::from(&case("static-plain"));
    let mut other = life.clone();
    other.mirror.as_mut().unwrap()["metadata"]["annotations"]["kubernetes.io/config.source"] = json!("api");
    other.mirror.as_mut().unwrap()["metadata"]["uid"] = json!("other");
    let wanted = "mirror.metadata.annotations.kubernetes.io/config.source: recorded \"file\", ours \"api\"";
    assert_eq!(differences(&life, &other, 36), [wanted]);
    other.mirror = None;
    assert_eq!(differences(&life, &other, 36), ["mirror: recorded, ours not"]);
}

#[test]
fn what_a_server_cannot_hold_is_not_missed() {
    let life = Life::from(&case("plain"));
    let mut other = life.clone();
    for version in &mut other.history {
        version["status"].as_object_mut().unwrap().remove("hostIPs");
    }
    assert_eq!(differences(&life, &other, 20), Vec::<String>::new());
    assert!(!differences(&life, &other, 36).is_empty());
}

#[test]
fn the_node_object_counts_but_for_facts_of_the_machine() {
    let node = golden_node();
    let mut other = node.clone();
    other["status"]["nodeInfo"]["bootID"] = json!("another");
    other["status"]["capacity"]["ephemeral-storage"] = json!("1Ki");
    other["status"]["addresses"][0]["address"] = json!("192.0.2.1");
    other["status"]["capacity"]["memory"] = json!("202400Ki");
    other["status"]["allocatable"]["memory"] = json!("100000Ki");
    assert_eq!(node_object::differences(&node, &other, 36), Vec::<String>::new());
    other["status"]["conditions"][3]["reason"] = json!("Fine");
    other["status"]["allocatable"]["memory"] = json!("100001Ki");
    other["metadata"]["labels"]["more"] = json!("x");
    assert_eq!(
        node_object::differences(&node, &other, 36),
        [
            "node.metadata.labels.more: recorded null, ours \"x\"",
            "node.status.allocatable.memory: recorded \"102400Ki less\", ours \"102399Ki less\"",
            "node.status.conditions[3].reason: recorded \"KubeletReady\", ours \"Fine\"",
        ]
    );
}

#[test]
fn sequences_are_put_side_by_side() {
    let pairs = |a: &str, b: &str| -> String {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let side = |p| match p {
            (Some(i), Some(_)) => format!("{}", a[i]),
            (Some(i), None) => format!("-{}", a[i]),
            (None, Some(j)) => format!("+{}", b[j]),
            (None, None) => String::new(),
        };
        align(&a, &b).into_iter().map(side).collect()
    };
    for (a, b, wanted) in
        [("", "", ""), ("abc", "abc", "abc"), ("abc", "ac", "a-bc"), ("ac", "abc", "a+bc"), ("ab", "cd", "-a-b+c+d")]
    {
        assert_eq!(pairs(a, b), wanted);
    }
}

#[test]
fn a_star_stands_for_any_text() {
    let table = [
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("a*c", "abbc", true),
        ("a*c", "ac", true),
        ("a*c", "acb", false),
        ("*b*", "abc", true),
        ("*b*d*", "abc", false),
        ("*", "", true),
    ];
    for (pattern, text, wanted) in table {
        assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
    }
}

#[test]
fn the_documents_rows_can_be_read_and_name_cases_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known = names();
    for (document, section) in [EVERYWHERE, ON_OWN_RUNTIME] {
        for row in rows(&std::fs::read_to_string(root.join(document)).unwrap(), section).unwrap() {
            for case in &row.cases {
                assert!(known.contains(case) || case == golden_compare::bed::NODE_CASE, "no case {case}: {row:?}");
            }
        }
    }
    let newer = format!("{}\n| a | b | c |\n|---|---|---|\n| x | `y z` | from 1.27 on: at times: so |\n", EVERYWHERE.1);
    let newer = rows(&newer, EVERYWHERE.1).unwrap().remove(0);
    assert!(newer.since == 27 && newer.at_times, "{newer:?}");
    assert!(rows("nothing", EVERYWHERE.1).is_err());
    let damaged = format!("{}\n| a | b | c |\n|---|---|---|\n| x | `y z` |  |\n", EVERYWHERE.1);
    assert!(rows(&damaged, EVERYWHERE.1).is_err());
}

fn outcome(case: &str, differences: &[&str]) -> Outcome {
    let differences = differences.iter().map(|d| (*d).to_owned()).collect();
    Outcome { case: case.to_owned(), compared: (1, 2, 3), skipped: None, differences }
}

#[test]
fn a_report_is_good_when_every_difference_is_listed_and_every_row_shows() {
    let row = |cases: &[&str], difference: &str| Row {
        cases: cases.iter().map(|c| (*c).to_owned()).collect(),
        difference: difference.to_owned(),
        why: "so".to_owned(),
        at_times: false,
        since: 0,
    };
    let good = Report { outcomes: vec![outcome("a", &["x: 1"])], rows: vec![row(&["a"], "x*")], complete: true };
    assert!(good.is_good(), "{}", good.table());
    assert_eq!(good.json()["cases"][0]["differences"][0]["why"], "so");
    let other_case = Report { rows: vec![row(&["b"], "x*")], ..good.clone() };
    assert!(!other_case.is_good() && other_case.table().contains("\na: x: 1"));
    let gone = Report { rows: vec![row(&["a"], "x*"), row(&[], "y*")], ..good.clone() };
    assert!(
        !gone.is_good() && gone.table().ends_with("listed in docs/compat.md or docs/runtime.md, but not there: []: y*")
    );
    let mut at_times = gone.clone();
    at_times.rows[1].at_times = true;
    assert!(at_times.is_good());
    // A part of the cases says nothing about rows of all.
    assert!(Report { complete: false, ..gone }.is_good());
}
