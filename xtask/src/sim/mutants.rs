//! Would the simulation notice? Faults that node agents have had are put into a copy of this repository, one at a time, and searched for.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::mutants::{self, Copy};
use crate::workspace::Program;

/// Of fourteen mutants thirteen must be found.
const MUST: (usize, usize) = (13, 14);

/// How the mutants are searched for.
pub(super) struct Search {
    /// Part of the names of those that are meant.
    pub(super) only: Option<String>,
    /// For how long each.
    pub(super) limit: Duration,
    /// The first seed.
    pub(super) from: u64,
    /// What searches, and the profile that it is built with.
    pub(super) program: Program,
    pub(super) profile: &'static str,
}

/// What became of one.
struct Row {
    name: String,
    found: Option<Found>,
    took: Duration,
}

/// The first scenario that broke a rule.
struct Found {
    seed: u64,
    checker: String,
    text: String,
}

/// Tries all; prints a table. Answers whether enough were found.
pub(super) fn run(search: &Search) -> anyhow::Result<bool> {
    let copy = Copy::new("sim-mutants")?;
    let mut rows = Vec::new();
    for patch in mutants::patches("", search.only.as_deref())? {
        let name = mutants::name(&patch);
        eprintln!("=== {name}: builds");
        let program = copy.build(&patch, &search.program, search.profile)?;
        let begun = Instant::now();
        let found = look(&program, &copy.place().join("found"), search)?;
        let took = begun.elapsed();
        let text = found.as_ref().map_or("not found".to_owned(), |f| format!("seed {}, {}", f.seed, f.checker));
        eprintln!("=== {name}: {text}, {:.1} s", took.as_secs_f64());
        rows.push(Row { name, found, took });
    }
    // Nobody takes what is left there for a node.
    copy.restore()?;
    println!("{}", table(&rows));
    let found = rows.iter().filter(|row| row.found.is_some()).count();
    println!("{found} of {} are found", rows.len());
    Ok(found * MUST.1 >= rows.len() * MUST.0)
}

/// Plays seeds until one breaks a rule.
fn look(program: &Path, folder: &Path, search: &Search) -> anyhow::Result<Option<Found>> {
    let request = serde_json::json!({
        "first": search.from, "seconds": search.limit.as_secs(), "stop": true, "folder": folder, "json": true,
        "transcript": false,
    });
    let mut command = Command::new(program);
    let output = command.arg(request.to_string()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("{}", program.display()))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("{} ended with {}", program.display(), output.status);
    }
    Ok(first_broken(&String::from_utf8_lossy(&output.stdout)))
}

fn first_broken(lines: &str) -> Option<Found> {
    let told = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(|v| v["ok"] == false)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let first = &told["findings"][0];
    Some(Found { seed: told["seed"].as_u64()?, checker: text(&first["checker"]), text: text(&first["text"]) })
}

fn table(rows: &[Row]) -> String {
    let mut out = "| mutant | seed | seconds | rule | what is said |\n|---|---|---|---|---|\n".to_owned();
    for Row { name, found, took } in rows {
        let took = took.as_secs();
        out += &match found {
            Some(Found { seed, checker, text }) => format!("| {name} | {seed} | {took} | `{checker}` | {text} |\n"),
            None => format!("| {name} | - | {took} | - | not found |\n"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_scenario_that_broke_a_rule_is_told_in_a_table() {
        let lines = concat!(
            r#"{"seed":1,"hash":"0","ok":true}"#,
            "\n",
            r#"{"seed":2,"ok":false,"findings":[{"at":1.0,"checker":"rest","text":"a folder is left"}]}"#,
            "\n",
            r#"{"seeds":2,"failed":1}"#,
        );
        let rows = [
            Row { name: "leak".to_owned(), found: first_broken(lines), took: Duration::from_secs(7) },
            Row { name: "quiet".to_owned(), found: first_broken("{\"ok\":true}\n"), took: Duration::from_secs(60) },
        ];
        let told = table(&rows);
        let lines: Vec<&str> = told.lines().skip(2).collect();
        assert_eq!(lines, ["| leak | 2 | 7 | `rest` | a folder is left |", "| quiet | - | 60 | - | not found |"]);
    }

    #[test]
    fn each_mutant_is_a_change_of_sources_that_are_there() {
        mutants::all_apply("", 12);
    }
}
