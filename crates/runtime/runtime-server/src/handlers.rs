//! OCI runtimes: the server's own, and those that pods ask for by name (`runtimeHandler` of a RuntimeClass), by a file:
//!
//! ```toml
//! [handlers.crun]
//! program = "/usr/bin/crun"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use container_spec::NodeFacts;
use host_linux::LinuxCgroups;
use serde::Deserialize;

use crate::error::{At, Done, RuntimeError};
use crate::options::Options;
use crate::{apparmor, node};

/// Names are those of RuntimeClasses' handlers: DNS labels.
const MAX_NAME: usize = 63;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    handlers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    program: PathBuf,
}

/// Reads the handlers of a configuration file: name and program of each.
///
/// # Errors
/// It cannot be read, or says what cannot be.
pub fn read_handlers(path: &Path) -> Result<BTreeMap<String, PathBuf>, RuntimeError> {
    let text = fs::read_to_string(path).at("read", path)?;
    parse(&text).map_err(|why| RuntimeError::Refused(format!("{}: {why}", path.display())))
}

fn parse(text: &str) -> Result<BTreeMap<String, PathBuf>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut handlers = BTreeMap::new();
    for (name, Entry { program }) in file.handlers {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let ends = name.starts_with('-') || name.ends_with('-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) || ends {
            return Err(format!("handler {name:?}: names are DNS labels"));
        }
        if !program.is_absolute() {
            return Err(format!("handler {name:?}: {}: not an absolute path", program.display()));
        }
        handlers.insert(name, program);
    }
    Ok(handlers)
}

/// An OCI runtime and what it can do here.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    pub(crate) program: PathBuf,
    /// Its `--root`.
    pub(crate) root: PathBuf,
    pub(crate) node: NodeFacts,
}

impl Handler {
    /// A call of it, without input and output.
    pub(crate) fn call(&self) -> tokio::process::Command {
        let mut call = tokio::process::Command::new(&self.program);
        call.arg("--root").arg(&self.root);
        call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        call
    }
}

/// All that are configured, by name; the server's own has none.
#[derive(Clone, Debug)]
pub(crate) struct Handlers {
    own: Handler,
    named: BTreeMap<String, Handler>,
}

impl Handlers {
    /// Asks each of them what it can do.
    pub(crate) async fn look(options: &Options, cgroups: &LinuxCgroups) -> Self {
        let apparmor = apparmor::load().await;
        let look = async |name: &str, program: &Path| Handler {
            program: program.to_owned(),
            root: options.oci_root(name),
            node: node::facts(cgroups, &apparmor, program).await,
        };
        let own = look("", &options.oci_runtime).await;
        let mut named = BTreeMap::new();
        for (name, program) in &options.handlers {
            named.insert(name.clone(), look(name, program).await);
        }
        Self { own, named }
    }

    /// What the machine can do whatever the OCI runtime.
    pub(crate) fn node(&self) -> &NodeFacts {
        &self.own.node
    }

    /// The one of a name.
    ///
    /// # Errors
    /// There is none: it never was, or has been taken out of the configuration.
    pub(crate) fn find(&self, name: &str) -> Done<&Handler> {
        let found = if name.is_empty() { Some(&self.own) } else { self.named.get(name) };
        found.ok_or_else(|| RuntimeError::Refused(format!("no runtime for {name:?} is configured")))
    }

    /// All with their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Handler)> {
        std::iter::once(("", &self.own)).chain(self.named.iter().map(|(name, handler)| (name.as_str(), handler)))
    }

    /// Those that know a container: each keeps a folder of its name.
    pub(crate) fn that_know(&self, container: &str) -> Vec<&Handler> {
        self.all().map(|(_, handler)| handler).filter(|h| h.root.join(container).exists()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn handlers_are_names_and_programs() {
        let two = "[handlers.crun]\nprogram = \"/usr/bin/crun\"\n[handlers.kata-qemu]\nprogram = \"/opt/k\"\n";
        let found = parse(two).expect("good");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["crun", "kata-qemu"]);
        assert!(parse("").expect("nothing").is_empty());
        for (bad, why) in [
            ("[handlers.Crun]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.\"a/b\"]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.-a]\nprogram = \"/a\"", "DNS labels"),
            ("[handlers.a]\nprogram = \"runc\"", "absolute"),
            ("[handlers.a]\nprogram = \"/a\"\nroot = \"/b\"", "unknown field"),
            ("[handler.a]\nprogram = \"/a\"", "unknown field"),
            ("[handlers.a]", "program"),
        ] {
            let refused = parse(bad).expect_err(bad);
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
