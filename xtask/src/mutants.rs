//! Faults that are put into a copy of this repository, one at a time, for whoever wants to know whether they would be noticed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::workspace::{self, Program};

/// Patches of a folder below `tests/mutants`, by name; with a part of a name only these.
pub(crate) fn patches(kind: &str, only: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let folder = workspace::root().join("tests/mutants").join(kind);
    let entries = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut patches = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    let is_meant = |path: &Path| {
        path.extension().is_some_and(|e| e == "patch") && only.is_none_or(|part| name(path).contains(part))
    };
    patches.retain(|path| is_meant(path));
    patches.sort();
    if patches.is_empty() {
        bail!("there is no mutant {} in {}", only.unwrap_or_default(), folder.display());
    }
    Ok(patches)
}

/// The name of a mutant is its file's.
pub(crate) fn name(patch: &Path) -> String {
    patch.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A copy of the repository, in which one mutant at a time is built.
pub(crate) struct Copy {
    place: PathBuf,
    files: BTreeSet<PathBuf>,
}

impl Copy {
    /// Files of the repository as they are now, whether or not they are committed.
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let mut command = workspace::command("git");
        command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let output = command.output().context("cannot start git")?;
        if !output.status.success() {
            bail!("git ls-files ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let text = String::from_utf8(output.stdout).context("a file's name is no text")?;
        let names = text.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
        let files = names.filter(|name| workspace::root().join(name).is_file()).collect();
        Ok(Copy { place: workspace::target_dir()?.join(name), files })
    }

    /// Where this command may leave files.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    fn tree(&self) -> PathBuf {
        self.place.join("tree")
    }

    /// The copy is as the repository. What is alike is left alone: cargo builds what is written anew.
    pub(crate) fn restore(&self) -> anyhow::Result<()> {
        for name in &self.files {
            let (from, to) = (workspace::root().join(name), self.tree().join(name));
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

    /// Builds a program with one mutant.
    pub(crate) fn build(&self, patch: &Path, program: &Program, profile: &str) -> anyhow::Result<PathBuf> {
        self.restore()?;
        self.apply(patch)?;
        let target = self.place.join("target");
        let mut command = workspace::command("cargo");
        command.current_dir(self.tree()).env("CARGO_TARGET_DIR", &target);
        command.args(["build", "--quiet"]).args(program.arguments()).args(["--profile", profile]);
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!("the mutant {} does not build", name(patch));
        }
        Ok(target.join(if profile == "dev" { "debug" } else { profile }).join(program.name))
    }

    fn apply(&self, patch: &Path) -> anyhow::Result<()> {
        let mut command = workspace::command("git");
        // As in no repository: else what lies in an ignored folder of one is passed over.
        command.current_dir(self.tree()).env("GIT_CEILING_DIRECTORIES", &self.place);
        let status = command.arg("apply").arg(patch).status().context("cannot start git")?;
        if !status.success() {
            bail!("{} does not apply any more: make it anew against the sources of now", patch.display());
        }
        Ok(())
    }
}

/// Fails a test when a mutant of that folder is no change of sources that are there, or there are fewer.
#[cfg(test)]
pub(crate) fn all_apply(kind: &str, at_least: usize) {
    let all = patches(kind, None).unwrap();
    assert!(all.len() >= at_least, "{all:?}");
    for patch in all {
        let text = fs::read_to_string(&patch).unwrap();
        let files: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("--- a/")).collect();
        assert!(!files.is_empty(), "{}", patch.display());
        assert!(files.iter().all(|file| workspace::root().join(file).is_file()), "{}: {files:?}", patch.display());
        let mut check = workspace::command("git");
        let status = check.args(["apply", "--check"]).arg(&patch).status().unwrap();
        assert!(status.success(), "{} does not apply", patch.display());
    }
    assert!(patches(kind, Some("no such one")).is_err());
}
