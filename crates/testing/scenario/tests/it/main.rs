//! Scenarios of the corpus and some by chance on a whole node; and that a run is the same in any process.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scenario::{CHECKERS, Mix, Outcome, Scenario, generate, play};

/// Scenarios as files, with a name that says what they are about.
fn corpus() -> Vec<(PathBuf, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/scenarios");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let scenario = Scenario::from_text(&std::fs::read_to_string(&file).unwrap());
        let scenario = scenario.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        (file, scenario)
    };
    files.into_iter().map(read).collect()
}

fn assert_fine(what: &str, scenario: &Scenario) -> Outcome {
    let outcome = play(scenario, false);
    assert!(outcome.findings.is_empty(), "{what}: {:#?}", outcome.findings);
    assert_eq!(outcome.counts[0], scenario.steps.len(), "{what}: all steps were made");
    outcome
}

#[test]
fn scenarios_of_the_corpus_break_no_rule() {
    for (file, scenario) in corpus() {
        assert_fine(&file.display().to_string(), &scenario);
    }
}

/// Few, as the build of tests is slow; the program plays as many as one likes.
#[test]
fn seeds_break_no_rule() {
    let mut took = std::collections::BTreeSet::new();
    for seed in SEEDS {
        let outcome = assert_fine(&format!("seed {seed}"), &generate(seed, Mix::default()));
        took.extend(outcome.steps.into_keys());
    }
    for step in ["bind", "static", "delete", "exit", "killDaemon", "fault", "api", "runtime", "calm"] {
        assert!(took.contains(step), "no {step} in these seeds");
    }
}

const SEEDS: std::ops::Range<u64> = 1..9;

/// Two processes: random sources and the order of hashes differ between them.
#[test]
fn a_seed_gives_the_same_transcript_in_any_process() {
    let request = serde_json::json!({
        "first": 1, "end": 2, "folder": std::env::temp_dir().join("scenario-tests"), "json": false, "transcript": true,
    });
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scenario"));
        command.arg(request.to_string()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let [one, two] = [run(), run()].map(|child| {
        let done = child.wait_with_output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        // The last lines have real time in them.
        text.lines().filter(|l| !l.contains("per minute")).map(str::to_owned).collect::<Vec<_>>()
    });
    for (n, (a, b)) in one.iter().zip(&two).enumerate() {
        assert!(a == b, "line {n}:\n{a}\n{b}");
    }
    assert_eq!(one.len(), two.len());
    for word in ["Started(", "Status(", "call ", "actor "] {
        assert!(one.iter().filter(|l| l.contains(word)).count() > 5, "{word}");
    }
}

#[test]
fn each_checker_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = CHECKERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), CHECKERS.len());
}
