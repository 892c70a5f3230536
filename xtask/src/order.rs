//! Which functions does a node run? The linker lays them side by side, so that only their pages are in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::workspace;

mod callgrind;

/// The list, as `crates/app/bosun/build.rs` gives it to the linker.
pub(crate) const LIST: &str = "crates/app/bosun/order.txt";

/// Records which functions a node runs, for the linker: `crates/app/bosun/order.txt`.
///
/// Runs rounds of `bench` with the release build under valgrind (a Debian package) and writes down which functions were
/// executed. Takes about fifteen minutes. To be repeated when `bench` says that the program has too few functions of the
/// list: names change with the compiler and with the versions of dependencies.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many pods the big round has.
    #[arg(long, default_value_t = 20)]
    pods: usize,
    /// Only these rounds, and the list keeps what it has: what they run besides comes to its end.
    #[arg(long, value_name = "ROUND", value_parser = clap::builder::PossibleValuesParser::new(ROUNDS.map(|(name, _)| name)))]
    only: Vec<String>,
}

/// Rounds of `bench`, and how it is asked for them.
const ROUNDS: [(&str, &[&str]); 4] = [
    ("cluster", &["--cluster"]),
    ("watchers", &["--only", "watchers"]),
    ("face", &["--only", "face"]),
    ("volumes", &["--only", "volumes"]),
];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !workspace::has("valgrind") {
        bail!("valgrind is not on the path: `apt-get install valgrind` brings it");
    }
    let program = workspace::build_bosun(true)?;
    let known = functions_of(&program)?;
    let folder = workspace::target_dir()?.join("order");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("what an earlier run left")?;
    }
    std::fs::create_dir_all(&folder).context("a folder for what valgrind writes")?;
    let wrapper = wrapper(&folder, &program)?;
    let pods = args.pods.to_string();
    for (_, rounds) in ROUNDS.iter().filter(|(name, _)| args.only.is_empty() || args.only.iter().any(|o| o == name)) {
        println!("bench {} under valgrind; its figures say nothing", rounds.join(" "));
        let mut bench = Command::new(std::env::current_exe().context("this program")?);
        bench.arg("bench").args(*rounds).args(["--pods", &pods]).env("BOSUN_BIN", &wrapper);
        let status = bench.status().context("bench")?;
        if !status.success() {
            bail!("bench under valgrind ended with {status}");
        }
    }
    let mut ran = if args.only.is_empty() { Vec::new() } else { listed(&known)? };
    let before: BTreeSet<String> = ran.iter().cloned().collect();
    ran.extend(executed(&folder, &known)?.into_iter().filter(|name| !before.contains(name)));
    let mut text = String::new();
    for name in &ran {
        writeln!(text, "{name}")?;
    }
    std::fs::write(workspace::root().join(LIST), text).context(LIST)?;
    let bytes: u64 = ran.iter().filter_map(|name| known.get(name)).sum();
    let all: u64 = known.values().sum();
    println!(
        "{} of {} functions are listed, {} of them new, {bytes} of {all} bytes: {LIST}",
        ran.len(),
        known.len(),
        ran.len() - before.len()
    );
    Ok(())
}

/// What the list has of a program's functions.
fn listed(known: &BTreeMap<String, u64>) -> anyhow::Result<Vec<String>> {
    let list = std::fs::read_to_string(workspace::root().join(LIST)).context(LIST)?;
    Ok(list.lines().filter(|name| known.contains_key(*name)).map(ToOwned::to_owned).collect())
}

/// How many functions of the list a program lacks, and how long the list is. `None`: it is not a program with symbols.
pub(crate) fn missing(program: &Path) -> anyhow::Result<Option<(usize, usize)>> {
    let known = functions_of(program)?;
    let list = std::fs::read_to_string(workspace::root().join(LIST)).context(LIST)?;
    let missing = list.lines().filter(|name| !known.contains_key(*name)).count();
    Ok((!known.is_empty()).then(|| (missing, list.lines().count())))
}

/// Functions of a program with their sizes in bytes.
fn functions_of(program: &Path) -> anyhow::Result<BTreeMap<String, u64>> {
    let out = Command::new("nm").arg("-S").arg(program).output().context("nm (Debian package binutils)")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let function = |line: &str| {
        let [_, size, kind, name] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        (kind.eq_ignore_ascii_case("t")).then_some(())?;
        Some((name.to_owned(), u64::from_str_radix(size, 16).ok()?))
    };
    Ok(text.lines().filter_map(function).collect())
}

/// A program that runs the daemon under valgrind, and the rest of its verbs as they are.
fn wrapper(folder: &Path, program: &Path) -> anyhow::Result<std::path::PathBuf> {
    let (file, program, out) = (folder.join("bosun"), program.display(), folder.display());
    // Written again and again, as some of the rounds kill the daemon.
    let valgrind = format!(
        "valgrind --quiet --tool=callgrind --demangle=no --fair-sched=yes --dump-every-bb=20000000 \
         --callgrind-out-file={out}/calls.%p"
    );
    let script = format!("#!/bin/sh\n[ \"$1\" = run ] && exec {valgrind} {program} \"$@\"\nexec {program} \"$@\"\n");
    std::fs::write(&file, script).context("the wrapper")?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).context("the wrapper")?;
    Ok(file)
}

/// What ran, in the order in which it was first told of: what a start needs, then what a pod needs, then the rest. Of one
/// moment by name, so that two lists can be compared.
fn executed(folder: &Path, known: &BTreeMap<String, u64>) -> anyhow::Result<Vec<String>> {
    let mut told = Vec::new();
    for entry in std::fs::read_dir(folder).context("what valgrind wrote")? {
        let path = entry?.path();
        if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("calls.")) {
            told.push((std::fs::metadata(&path).and_then(|m| m.modified()).context("what valgrind wrote")?, path));
        }
    }
    told.sort();
    let (mut ran, mut seen) = (Vec::new(), BTreeSet::new());
    for (_, path) in told {
        let text = std::fs::read(&path).context("what valgrind wrote")?;
        let mut cost = BTreeMap::new();
        callgrind::add(&String::from_utf8_lossy(&text), &mut cost);
        let new = cost.into_iter().filter(|(name, own)| *own > 0 && known.contains_key(name));
        ran.extend(new.map(|(name, _)| name).filter(|name| seen.insert(name.clone())));
    }
    if ran.is_empty() {
        bail!("valgrind wrote of no function of the daemon");
    }
    Ok(ran)
}
