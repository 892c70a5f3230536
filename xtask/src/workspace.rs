//! Where the repository is, and what cargo says is in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Tells test beds that pods run on bosun's own runtime.
pub(crate) const ON_OWN_RUNTIME: (&str, &str) = (testbed::RUNTIME_VARIABLE, "embedded");

/// Root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// `cargo metadata` without the packages of others.
pub(crate) fn metadata() -> anyhow::Result<cargo_metadata::Metadata> {
    let mut command = cargo_metadata::MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml")).no_deps().other_options(["--offline".to_owned()]);
    command.exec().context("cargo metadata")
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    Ok(metadata()?.target_directory.into_std_path_buf())
}

/// A program that runs in the root of the repository. What `cargo run` told xtask of its own package is kept from it: a build script
/// that reads such a variable would run anew, and all that depends on its package be compiled again.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_str().is_some_and(is_of_package)) {
        command.env_remove(name);
    }
    command
}

fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|start| variable.starts_with(start))
}

/// A program of a package of the same name.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Those of its package that it is built with.
    pub(crate) features: &'static str,
}

impl Program {
    /// What cargo is told to build.
    pub(crate) fn arguments(&self) -> [&str; 6] {
        ["--package", self.name, "--bin", self.name, "--features", self.features]
    }
}

/// Runs a program in the root of the repository with its output on the terminal.
pub(crate) fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    run_with(program, args, &[])
}

/// As [`run`], with environment variables.
pub(crate) fn run_with(program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let mut command = command(program);
    command.args(args).envs(env.iter().copied());
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("`{program} {}` ended with {status}", args.join(" "));
    }
    Ok(())
}

/// Builds the daemon and returns the program.
pub(crate) fn build_bosun(release: bool) -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os("BOSUN_BIN") {
        return Ok(given.into());
    }
    build("bosun", release)
}

/// A release of `bosun-pod`: linked statically, so that no library of the node is in the memory of what enters containers (`docs/runtime.md`).
const STATIC_POD: &str = "rustc --release --package pod-supervisor --bin bosun-pod -- -C target-feature=+crt-static";

/// Builds the daemon with what it needs to run pods itself, and returns the program; one that was given has it beside it.
pub(crate) fn build_bosun_and_runtime(release: bool) -> anyhow::Result<PathBuf> {
    match std::env::var_os("BOSUN_BIN") {
        Some(given) => Ok(given.into()),
        None if release => {
            run("cargo", &STATIC_POD.split(' ').collect::<Vec<_>>())?;
            build("bosun", true)
        }
        None => build_programs(&[("pod-supervisor", "bosun-pod"), ("bosun", "bosun")], false),
    }
}

/// Builds the program of a package that is called like it.
pub(crate) fn build(name: &str, release: bool) -> anyhow::Result<PathBuf> {
    build_programs(&[(name, name)], release)
}

/// Builds programs, each with its package before it, and returns the last one. Without optimisation by the workspace's features of dependencies, as
/// `cargo xtask` itself and all tests are: what they have in common is built once. A release by its own alone: nothing in it that only tests need.
fn build_programs(programs: &[(&str, &str)], release: bool) -> anyhow::Result<PathBuf> {
    let mut args = vec!["build"];
    args.extend(programs.iter().flat_map(|(_, name)| ["--bin", name]));
    let name = programs.last().map_or("", |(_, name)| name);
    if release {
        args.push("--release");
        args.extend(programs.iter().flat_map(|(package, _)| ["--package", package]));
    }
    run("cargo", &args)?;
    Ok(target_dir()?.join(if release { "release" } else { "debug" }).join(name))
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_cargo_told_of_this_package_reaches_no_program() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "who runs tests says it");
        let output = super::command("env").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|line| line.starts_with("PATH=")), "{text}");
        assert!(
            !text.lines().any(|line| line.starts_with("CARGO_PKG_") || line.starts_with("CARGO_MANIFEST_")),
            "{text}"
        );
    }
}
