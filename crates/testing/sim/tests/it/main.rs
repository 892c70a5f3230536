//! The same seed gives the same run of the whole node, to the last word, in any process.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Stdio};

const SEEDS: &str = "20";

/// Two processes: random sources and the order of hashes differ between them.
#[test]
fn twenty_seeds_give_the_same_transcripts_of_the_whole_node_in_two_processes() {
    let start =
        || Command::new(env!("CARGO_BIN_EXE_transcript")).args(["1", SEEDS]).stdout(Stdio::piped()).spawn().unwrap();
    let texts = [start(), start()].map(|child| {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", done.status);
        String::from_utf8(done.stdout).unwrap()
    });
    let [one, two] = texts.each_ref().map(|t| t.lines().collect::<Vec<_>>());
    for (n, (a, b)) in one.iter().zip(&two).enumerate() {
        let seed = one[..n].iter().rfind(|l| l.starts_with("seed "));
        assert!(a == b, "line {n} of {seed:?}:\n{a}\n{b}");
    }
    assert_eq!(one.len(), two.len());
    // All that there is in a node took part.
    for word in ["said", "call", "request", "event", "journal", "disk", "actor", "struck"] {
        assert!(one.iter().filter(|l| l.starts_with(&format!("{word} "))).count() > 20, "{word}");
    }
    for what in ["StatusManager: SetPodStatus {", ": FetchSecret secret,", "RuntimeClient -> : Observed"] {
        assert!(one.iter().any(|l| l.starts_with("said ") && l.contains(what)), "{what}");
    }
    for secret in ["hush", "aHVzaA=="] {
        assert!(!one.iter().any(|l| l.starts_with("said ") && l.contains(secret)), "{secret}");
    }
    for actor in ["api-source", "http-source", "status-syncer", "node-lease", "pod-worker/"] {
        assert!(one.iter().any(|l| l.starts_with(&format!("actor {actor}"))), "{actor}");
    }
    let different = one.split(|l| l.starts_with("seed ")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(different.len(), 21, "another seed gives another run");
}
