//! The same seed gives the same run.
//!
//! Per pod: which of several readers of one row or value is woken first is tokio's choice, whose randomness has a seed of its
//! own (`Builder::rng_seed` is not stable), so the order of pods within one virtual moment may differ.

use std::collections::BTreeMap;
use std::time::Duration;

use fakes::runtime::{ExecReply, Program, Pull};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, secs, simple};

/// UIDs that a reader knows.
fn named(name: &str, text: &str) -> String {
    text.replace(&format!("{{name: {name}}}"), &format!("{{name: {name}, uid: uid-{name}}}"))
}

/// A busy minute of a node.
fn transcript(seed: u64) -> Vec<String> {
    actor::testing::run(seed, |kernel| async move {
        let node = SimNode::start(&kernel);
        node.world.runtime.add_images(&["app:1", "tool:1"]);
        node.world.runtime.program("quick", &[Program::exits(secs(1), 0)]);
        node.world.runtime.program("crash", &[Program::exits(secs(1), 1)]);
        node.world.runtime.registry("pulled:1", Pull::Succeeds(secs(2)));
        node.world.runtime.on_exec(|_| ExecReply { takes: Duration::from_millis(50), ..ExecReply::default() });
        for i in 0..6 {
            let name = format!("plain{i}");
            node.put(&format!("{name}.yaml"), &named(&name, &simple(&name, "")));
        }
        let more = [
            ("looping", "\n  containers:\n  - {name: crash, image: 'app:1'}"),
            ("job", "\n  restartPolicy: Never\n  containers:\n  - {name: quick, image: 'app:1'}"),
            ("pulls", "\n  containers:\n  - {name: app, image: 'pulled:1'}"),
            ("noimage", "\n  containers:\n  - {name: app, image: 'missing:1'}"),
            (
                "rich",
                "
  initContainers:
  - {name: proxy, image: 'tool:1', restartPolicy: Always}
  - {name: quick, image: 'tool:1'}
  containers:
  - name: app
    image: app:1
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 3}
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}",
            ),
        ];
        for (name, spec) in more {
            // Pulls go one after the other: who comes first is no matter of chance.
            if name == "noimage" {
                sleep(secs(5)).await;
            }
            node.put(&format!("{name}.yaml"), &named(name, &pod(name, spec)));
        }
        node.until("rich is ready", LIMIT, |n| n.is_ready("rich")).await;
        sleep(secs(20)).await;
        node.take("plain3.yaml");
        node.take("rich.yaml");
        sleep(secs(60)).await;
        node.transcript()
    })
}

/// Where two texts part.
fn difference(a: &str, b: &str) -> String {
    let at = a.bytes().zip(b.bytes()).position(|(a, b)| a != b).unwrap_or_default();
    let piece = |s: &str| s.chars().skip(at.saturating_sub(60)).take(160).collect::<String>();
    format!("{:?} against {:?}", piece(a), piece(b))
}

/// The calls of each pod, with ids numbered by their first appearance in its calls.
fn by_pod(lines: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for line in lines {
        let subject = line.split(' ').nth(2).unwrap();
        let pod = subject.split('/').take(2).collect::<Vec<_>>().join("/");
        let (calls, ids) = out.entry(pod).or_default();
        let mut text = String::new();
        for word in line.split('"') {
            let is_id = word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
            if is_id && !ids.iter().any(|i| i == word) {
                ids.push(word.to_owned());
            }
            // Drawn anew in each step, and how many steps there are hangs on how changes fall together.
            let word =
                if word.contains("/root/pods/") && word.contains("/containers/") { "a message file" } else { word };
            match ids.iter().position(|i| i == word) {
                Some(n) if is_id => text.push_str(&format!("\"id {n}\"")),
                _ => text.push_str(&format!("{word}\"")),
            }
        }
        calls.push(text);
    }
    out.into_iter().map(|(pod, (calls, _))| (pod, calls)).collect()
}

#[test]
fn two_runs_of_one_seed_are_the_same_for_each_pod() {
    let (one, two) = (by_pod(&transcript(5)), by_pod(&transcript(5)));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    assert!(one.values().map(Vec::len).sum::<usize>() > 50, "{one:#?}");
    for (pod, calls) in &one {
        for (i, (a, b)) in calls.iter().zip(&two[pod]).enumerate() {
            assert!(a == b, "call {i} of {pod}: {}", difference(a, b));
        }
        assert_eq!(calls.len(), two[pod].len(), "{pod}");
    }
}
