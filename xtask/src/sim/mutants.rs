//! Would the simulation notice? Faults that node agents have had are put into a copy of this repository, one at a time, and searched for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::workspace;

/// Of twelve mutants eleven must be found.
const MUST: (usize, usize) = (11, 12);

/// How the mutants are searched for.
pub(super) struct Search {
    /// Part of the names of those that are meant.
    pub(super) only: Option<String>,
    /// For how long each.
    pub(super) limit: Duration,
    /// The first seed.
    pub(super) from: u64,
    /// Cargo's profile.
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
    let place = workspace::target_dir()?.join("sim-mutants");
    let tree = place.join("tree");
    let files = tracked()?;
    let mut rows = Vec::new();
    for patch in patches(search.only.as_deref())? {
        let name = patch.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        bring_up_to_date(&tree, &files)?;
        apply(&tree, &patch)?;
        eprintln!("=== {name}: builds");
        let program = build(&tree, &place.join("target"), search.profile)?;
        let begun = Instant::now();
        let found = look(&program, &place.join("found"), search)?;
        let took = begun.elapsed();
        let text = found.as_ref().map_or("not found".to_owned(), |f| format!("seed {}, {}", f.seed, f.checker));
        eprintln!("=== {name}: {text}, {:.1} s", took.as_secs_f64());
        rows.push(Row { name, found, took });
    }
    // Nobody takes what is left there for a node.
    bring_up_to_date(&tree, &files)?;
    println!("{}", table(&rows));
    let found = rows.iter().filter(|row| row.found.is_some()).count();
    println!("{found} of {} are found", rows.len());
    Ok(found * MUST.1 >= rows.len() * MUST.0)
}

fn patches(only: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let folder = workspace::root().join("tests/mutants");
    let entries = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut patches = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    let is_meant = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        path.extension().is_some_and(|e| e == "patch") && only.is_none_or(|part| name.contains(part))
    };
    patches.retain(|path| is_meant(path));
    patches.sort();
    if patches.is_empty() {
        bail!("there is no mutant {} in {}", only.unwrap_or_default(), folder.display());
    }
    Ok(patches)
}

/// Files of the repository as they are now, whether or not they are committed.
fn tracked() -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut command = workspace::command("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = command.output().context("cannot start git")?;
    if !output.status.success() {
        bail!("git ls-files ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("a file's name is no text")?;
    let names = text.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| workspace::root().join(name).is_file()).collect())
}

/// The copy is as the repository. What is alike is left alone: cargo builds what is written anew.
fn bring_up_to_date(tree: &Path, files: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for name in files {
        let (from, to) = (workspace::root().join(name), tree.join(name));
        let content = fs::read(&from).with_context(|| format!("{}", from.display()))?;
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        let folder = to.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        fs::write(&to, content).with_context(|| format!("{}", to.display()))?;
    }
    Ok(())
}

fn apply(tree: &Path, patch: &Path) -> anyhow::Result<()> {
    let mut command = workspace::command("git");
    // As in no repository: else what lies in an ignored folder of one is passed over.
    command.current_dir(tree).env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
    let status = command.arg("apply").arg(patch).status().context("cannot start git")?;
    if !status.success() {
        bail!("{} does not apply any more: make it anew against the sources of now", patch.display());
    }
    Ok(())
}

fn build(tree: &Path, target: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let mut command = workspace::command("cargo");
    command.current_dir(tree).env("CARGO_TARGET_DIR", target);
    command.args(["build", "--quiet", "--package", "scenario", "--bin", "scenario", "--profile", profile]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the mutant does not build");
    }
    Ok(target.join(if profile == "dev" { "debug" } else { profile }).join("scenario"))
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
        let all = patches(None).unwrap();
        assert!(all.len() >= 12, "{all:?}");
        for patch in all {
            let text = fs::read_to_string(&patch).unwrap();
            let files: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("--- a/")).collect();
            assert!(!files.is_empty(), "{}", patch.display());
            assert!(files.iter().all(|file| workspace::root().join(file).is_file()), "{}: {files:?}", patch.display());
            let mut check = workspace::command("git");
            let status = check.args(["apply", "--check"]).arg(&patch).status().unwrap();
            assert!(status.success(), "{} does not apply", patch.display());
        }
        assert!(patches(Some("no such one")).is_err());
    }
}
