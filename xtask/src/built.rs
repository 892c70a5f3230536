//! What the last build of the whole workspace left, and how its tests are run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::workspace;

/// Names a folder with [`CARGO`] and [`TESTS`]: the tests that were built are run without asking cargo, who may be building something else.
pub(crate) const FOLDER: &str = "XTASK_BUILT_TESTS";
/// What cargo says of the workspace.
const CARGO: &str = "cargo-metadata.json";
/// Where nextest finds the programs with tests.
const TESTS: &str = "binaries-metadata.json";

/// The daemon with what it needs to run pods itself: as that build left it (`is_built`), or built now.
pub(crate) fn daemon(is_built: bool, release: bool) -> anyhow::Result<PathBuf> {
    match std::env::var_os("BOSUN_BIN") {
        Some(given) => Ok(given.into()),
        None if is_built => program("bosun"),
        None => workspace::build_bosun_and_runtime(release),
    }
}

/// A program as that build left it; its package has a test that runs it.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let program = workspace::target_dir()?.join("debug").join(name);
    if !program.is_file() {
        bail!("{} is not built: `cargo xtask test` does, or leave out --built", program.display());
    }
    Ok(program)
}

/// What nextest is told so that it runs tests of that build, or builds those of these packages.
pub(crate) fn tests(is_built: bool, packages: &[&str]) -> Vec<String> {
    if is_built {
        return of(std::env::var_os(FOLDER));
    }
    let packages = packages.iter().flat_map(|name| ["--package", name]);
    ["--tests"].into_iter().chain(packages).map(str::to_owned).collect()
}

fn of(folder: Option<OsString>) -> Vec<String> {
    let Some(folder) = folder else {
        // Features of dependencies depend on what is built together.
        return vec!["--workspace".to_owned()];
    };
    let file = |name: &str| Path::new(&folder).join(name).to_string_lossy().into_owned();
    vec!["--cargo-metadata".to_owned(), file(CARGO), "--binaries-metadata".to_owned(), file(TESTS)]
}

/// Notes in a folder what [`tests`] needs of the tests that are built.
///
/// # Errors
/// One does not build, or cannot be noted.
pub(crate) fn note(folder: &Path) -> anyhow::Result<()> {
    let tests = ["nextest", "list", "--workspace", "--list-type", "binaries-only", "--message-format", "json"];
    // What is built for other systems need not be there.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = ["metadata", "--offline", "--format-version", "1", "--filter-platform", &platform];
    for (name, args) in [(CARGO, metadata.as_slice()), (TESTS, &tests)] {
        let output = workspace::command("cargo").args(args).output().context("cannot start cargo")?;
        if !output.status.success() {
            bail!("`cargo {}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        let path = folder.join(name);
        std::fs::write(&path, output.stdout).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_asked_where_it_is_noted_what_it_would_say() {
        assert_eq!(of(None), ["--workspace"]);
        let noted = of(Some("/n".into()));
        assert_eq!(
            noted,
            ["--cargo-metadata", "/n/cargo-metadata.json", "--binaries-metadata", "/n/binaries-metadata.json"]
        );
    }
}
