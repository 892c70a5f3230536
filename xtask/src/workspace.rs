//! Where the repository is, and what cargo says is in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

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

/// Runs a program in the root of the repository with its output on the terminal.
pub(crate) fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    run_with(program, args, &[])
}

/// As [`run`], with environment variables.
pub(crate) fn run_with(program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(args).envs(env.iter().copied()).current_dir(root());
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("`{program} {}` ended with {status}", args.join(" "));
    }
    Ok(())
}

/// The daemon as the last build of the whole workspace left it.
pub(crate) fn built_bosun() -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os("BOSUN_BIN") {
        return Ok(given.into());
    }
    let program = target_dir()?.join("debug/bosun");
    if !program.is_file() {
        bail!("{} is not built: `cargo xtask test` does, or leave out --built", program.display());
    }
    Ok(program)
}

/// Builds the daemon and returns the program.
pub(crate) fn build_bosun(release: bool) -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os("BOSUN_BIN") {
        return Ok(given.into());
    }
    build("bosun", release)
}

/// Builds the program of a package that is called like it.
pub(crate) fn build(name: &str, release: bool) -> anyhow::Result<PathBuf> {
    let mut args = vec!["build", "--package", name, "--bin", name];
    if release {
        args.push("--release");
    }
    run("cargo", &args)?;
    Ok(target_dir()?.join(if release { "release" } else { "debug" }).join(name))
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
