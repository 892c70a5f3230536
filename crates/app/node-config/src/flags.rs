//! The command line of a kubelet (interfaces 2): `kubelet ...` and `bosun run ...`.

mod given;
mod own;
mod split;
mod table;
mod values;

pub mod help;

pub use given::{AfterBoot, Flags};
pub(crate) use own::check;
pub use split::{FlagError, KUBERNETES_VERSION};

/// What a command line asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// Run the node.
    Run(Box<Flags>),
    /// Print the help: `-h`, `--help`.
    Help,
    /// Print this line: `--version`.
    Version(String),
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// The first flag that is unknown, was removed, lacks its value or has a malformed one; an argument that is no flag. Values
/// that are well-formed and not allowed are reported by [`crate::configure`].
pub fn parse(args: &[String]) -> Result<Asked, FlagError> {
    let split = split::split(args)?;
    if split.help {
        return Ok(Asked::Help);
    }
    if let Some(version) = split.version {
        return Ok(Asked::Version(version));
    }
    Ok(Asked::Run(Box::new(split.flags)))
}

/// A flag as a list of them shows it.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    /// How the value of nothing is written.
    pub(crate) empty: &'static str,
    /// What stands between a name and its value.
    pub(crate) between: char,
    pub(crate) duration: bool,
    pub(crate) secret: bool,
}

/// The flags that a kubelet 1.36 lists, and those of bosun. Those that are only swallowed for old installers are not here.
pub(crate) fn listed() -> impl Iterator<Item = Listed> {
    table::FLAGS.iter().filter(|f| f.name != "pod-infra-container-image").map(|f| Listed {
        name: f.name,
        empty: f.empty(),
        between: f.between(),
        duration: f.kind == values::Kind::Duration,
        secret: f.is_secret(),
    })
}

/// Whether a word such as `--fail-swap-on` is a switch: it takes no next word as its value.
#[must_use]
pub fn is_switch(word: &str) -> bool {
    let name = word.trim_start_matches('-').replace('_', "-");
    matches!(name.as_str(), "help" | "version") || table::find(&name).is_some_and(table::Flag::is_switch)
}
