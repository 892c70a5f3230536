//! OCI runtimes: the server's own, and those that pods ask for by name (`runtimeHandler` of a RuntimeClass), as the
//! runtime's file has them ([`crate::RuntimeFile`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use container_spec::NodeFacts;
use host_linux::LinuxCgroups;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::{Done, RuntimeError};
use crate::options::Options;
use crate::{apparmor, node};

/// Names are those of RuntimeClasses' handlers: DNS labels.
const MAX_NAME: usize = 63;

/// One of them, in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    program: PathBuf,
}

/// Name and program of each, of what the file says.
pub(crate) fn named<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, PathBuf>, D::Error> {
    let mut handlers = BTreeMap::new();
    for (name, Entry { program }) in BTreeMap::<String, Entry>::deserialize(from)? {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let ends = name.starts_with('-') || name.ends_with('-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) || ends {
            return Err(D::Error::custom(format!("handler {name:?}: names are DNS labels")));
        }
        if !program.is_absolute() {
            return Err(D::Error::custom(format!("handler {name:?}: {}: not an absolute path", program.display())));
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
    /// Its containers are what a supervisor makes, too: another one may be a machine of its own, or an emulated kernel.
    pub(crate) is_usual: bool,
}

/// OCI runtimes whose containers are plain Linux ones.
const USUAL: [&str; 2] = ["runc", "crun"];

fn is_usual(program: &Path) -> bool {
    program.file_name().is_some_and(|name| USUAL.iter().any(|usual| *usual == name))
}

impl Handler {
    /// A call of it, without input and output.
    pub(crate) fn call(&self) -> tokio::process::Command {
        let mut call = tokio::process::Command::new(&self.program);
        call.arg("--root").arg(&self.root);
        call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        call.env_remove("NOTIFY_SOCKET");
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
            is_usual: is_usual(program) && !options.oci_runtime_only,
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

    /// Whether supervisors may run commands in containers of a handler: its program makes nothing else. One that was taken out of the file is not known.
    pub(crate) fn leaves_commands(&self, handler: &str) -> bool {
        self.find(handler).is_ok_and(|h| h.is_usual) && node::joins_by_pidfd()
    }

    /// Those that know a container: each keeps a folder of its name.
    pub(crate) fn that_know(&self, container: &str) -> Vec<&Handler> {
        self.all().map(|(_, handler)| handler).filter(|h| h.root.join(container).exists()).collect()
    }
}
