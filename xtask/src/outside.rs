//! Is `docs/replace-a-manager.md` enough to build a node with a manager of one's own, outside of this workspace?

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::workspace;

/// The page whose manifest is built.
const PAGE: &str = "docs/replace-a-manager.md";
/// The page's whole program.
const PROGRAM: &str = "docs/examples/replaced-probes/src/main.rs";
/// What the page's manifest calls it.
pub(crate) const NAME: &str = "my-node";
/// What stands in the page's manifest for a place that everybody has to fill in.
const PLACE: &str = "git = \"URL OF THIS REPOSITORY\"";
/// The end-to-end test that runs the program as a node, and what tells it where that is.
pub(crate) const TEST: &str = "replaced::a_program_of_ones_own_is_a_node_with_its_own_probe_manager";
/// See [`TEST`].
pub(crate) const VARIABLE: &str = "REPLACED_PROBES_BIN";

/// A folder that nobody else has, outside of every workspace; gone with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("bosun-outside-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {e}", self.0.display());
        }
    }
}

/// Builds the page's program as a package of its own: with its own profile, lints, features and lock file, which begins with
/// the versions of ours. Returns the program. Other people's packages that it has in common with this workspace are not built again.
///
/// # Errors
/// The page has no manifest, or it does not build.
pub(crate) fn build(cargo: &dyn Fn(&[&str]) -> anyhow::Result<()>) -> anyhow::Result<PathBuf> {
    let (root, target) = (workspace::root(), workspace::target_dir()?);
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let manifest = manifest(&page, &root)?;
    let folder = Folder::new()?;
    // One of an earlier build is not taken for it.
    let program = target.join("debug").join(NAME);
    match std::fs::remove_file(&program) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(e).with_context(|| program.display().to_string());
        }
        _ => {}
    }
    let own = folder.0.join("Cargo.toml");
    std::fs::create_dir(folder.0.join("src"))?;
    std::fs::write(&own, manifest)?;
    std::fs::copy(root.join(PROGRAM), folder.0.join("src/main.rs")).context(PROGRAM)?;
    std::fs::copy(root.join("Cargo.lock"), folder.0.join("Cargo.lock"))?;
    let (own, into) = (own.to_string_lossy(), target.to_string_lossy());
    // As this workspace has other people's packages, which are not built again then. Its own are: their names say which workspace they are of.
    let alike = ["--config", "profile.dev.debug=false"];
    cargo(&[&alike[..], &["build", "--offline", "--manifest-path", &own, "--target-dir", &into]].concat())?;
    Ok(program)
}

/// The page's manifest with this workspace in its place.
fn manifest(page: &str, root: &Path) -> anyhow::Result<String> {
    let begin = page.split_once("```toml\n").with_context(|| format!("{PAGE} has no manifest"))?.1;
    let text = begin.split_once("```").context("the manifest has no end")?.0;
    let (before, after) = text.split_once(PLACE).with_context(|| format!("the manifest has no `{PLACE}`"))?;
    let crates = root.join("crates/app/bosun");
    Ok(format!("{before}path = \"{}\"{after}", crates.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        std::fs::read_to_string(workspace::root().join(path)).unwrap()
    }

    #[test]
    fn the_manifest_of_the_page_is_one() {
        let text = manifest(&read(PAGE), Path::new("/here")).unwrap();
        assert!(text.contains(&format!("\nname = \"{NAME}\"\n")), "{text}");
        assert!(text.contains("bosun = { path = \"/here/crates/app/bosun\" }\n"), "{text}");
        assert!(manifest("```toml\n[package]\n```", Path::new("/")).is_err());
    }

    #[test]
    fn the_code_of_the_page_is_that_of_the_program() {
        let (page, program) = (read(PAGE), read(PROGRAM));
        let (tutorial, page) = page.split_once("## In a program of your own").expect("it follows the tutorial");
        let changed = tutorial.split_once("```rust\n").and_then(|(_, code)| code.lines().next()).expect("a line");
        let whole = read("docs/examples/remote-probes/src/main.rs");
        assert!(whole.contains(&changed.replacen("mut ", "", 1)), "the example does not say {changed:?}");
        let shown = page.split("```rust\n").skip(1).take(2).filter_map(|block| block.split("```").next());
        let lines: Vec<&str> = shown.flat_map(str::lines).filter(|l| !l.is_empty()).collect();
        assert!(lines.len() > 15, "{lines:?}");
        let aside = |l: &str| l.starts_with("//") || l == "fn main() -> std::process::ExitCode {";
        for line in lines.into_iter().filter(|l| !aside(l)) {
            assert!(program.lines().any(|l| l == line), "{PROGRAM} does not say {line:?}");
        }
    }
}
