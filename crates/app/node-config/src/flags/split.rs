//! From words to flags, by the rules of pflag (interfaces 2.1).

use super::given::{Flags, Override};
use super::table::{self, Flag, To};
use super::{own, values};
use crate::error::Warning;
use crate::nearest::nearest;

/// Version of Kubernetes whose kubelet this daemon stands for; kubeadm and others read it from `--version`.
pub const KUBERNETES_VERSION: &str = "v1.36.2";

/// Why a command line is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct FlagError {
    text: String,
    /// What to do about it, when that can be said.
    pub hint: Option<String>,
}

impl FlagError {
    fn flag(text: impl std::fmt::Display) -> Self {
        Self { text: format!("failed to parse kubelet flag: {text}"), hint: None }
    }
}

#[derive(Default)]
pub(super) struct Split {
    pub(super) flags: Flags,
    pub(super) help: bool,
    pub(super) version: Option<String>,
}

pub(super) fn split(args: &[String]) -> Result<Split, FlagError> {
    let mut out = Split::default();
    let mut stray = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            stray = stray.or_else(|| rest.next());
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            read_flag(&mut out, name, value, &mut rest)?;
        } else if arg.len() > 1 && arg.starts_with('-') {
            shorthand(&mut out, arg, &mut rest)?;
        } else {
            stray = stray.or(Some(arg));
        }
    }
    match stray {
        Some(word) => {
            let hint = "a switch takes its value with an equals sign: --name=true".to_owned();
            let hint = ["true", "false"].contains(&word.as_str()).then_some(hint);
            Err(FlagError { text: format!("unknown command {word}"), hint })
        }
        None => Ok(out),
    }
}

/// `-v 4`, `-v=4`, `-v4`, `-h`.
fn shorthand(out: &mut Split, arg: &str, rest: &mut std::slice::Iter<'_, String>) -> Result<(), FlagError> {
    let body = &arg[1..];
    let mut chars = body.chars();
    match chars.next() {
        Some('h') => {
            out.help = true;
            Ok(())
        }
        Some('v') => {
            let value = chars.as_str();
            let value = (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value).to_owned());
            read_flag(out, "v", value, rest)
        }
        other => Err(FlagError::flag(format!("unknown shorthand flag: '{}' in -{body}", other.unwrap_or('-')))),
    }
}

fn read_flag(
    out: &mut Split,
    written: &str,
    value: Option<String>,
    rest: &mut std::slice::Iter<'_, String>,
) -> Result<(), FlagError> {
    let name = written.replace('_', "-");
    match name.as_str() {
        "help" => {
            out.help = value.as_deref().is_none_or(|v| values::bool(v) != Ok(false));
            return Ok(());
        }
        "version" => {
            out.version = version(value.as_deref().unwrap_or("true")).map_err(|e| invalid(&name, "", &e))?;
            return Ok(());
        }
        _ => {}
    }
    let Some(flag) = table::find(&name) else { return Err(unknown(written, &name)) };
    let value = match value {
        Some(value) => value,
        None if flag.is_switch() => "true".to_owned(),
        None => match rest.next() {
            Some(next) => next.clone(),
            None => return Err(FlagError::flag(format!("flag needs an argument: --{name}"))),
        },
    };
    apply(&mut out.flags, flag, &value).map_err(|reason| invalid(flag.name, &value, &reason))
}

fn invalid(name: &str, value: &str, reason: &str) -> FlagError {
    FlagError::flag(format!("invalid argument {value:?} for \"--{name}\" flag: {reason}"))
}

fn unknown(written: &str, name: &str) -> FlagError {
    let text = format!("failed to parse kubelet flag: unknown flag: --{written}");
    let hint = match table::REMOVED.iter().find(|(gone, _)| *gone == name) {
        Some((_, why)) => Some(format!("--{name} was removed from the kubelet: {why}")),
        None => nearest(name, table::names()).map(|near| format!("did you mean --{near}?")),
    };
    FlagError { text, hint }
}

fn version(value: &str) -> Result<Option<String>, String> {
    match value {
        "raw" => Ok(Some(format!(
            "version.Info{{Major:\"1\", Minor:\"36\", GitVersion:\"{KUBERNETES_VERSION}\", Platform:\"linux/{}\"}}",
            std::env::consts::ARCH
        ))),
        v if v.starts_with('v') => Ok(Some(format!("Kubernetes {v}"))),
        other => values::bool(other).map(|yes| yes.then(|| format!("Kubernetes {KUBERNETES_VERSION}"))),
    }
}

/// Writes one flag into its place.
fn apply(flags: &mut Flags, flag: &'static Flag, value: &str) -> Result<(), String> {
    flags.given.push((flag.name, if flag.is_secret() { "<masked>".to_owned() } else { value.to_owned() }));
    match &flag.to {
        To::Own(which) => {
            own::set(flags, *which, value)?;
            if let Some(instead) = own::without_effect(*which) {
                flags.warnings.push(Warning::of_flag(flag.name, format!("not implemented yet: {instead}")));
            }
            Ok(())
        }
        To::Field(field) => {
            let earlier = flags.overrides.iter().position(|o| o.flag == flag.name);
            let earlier = earlier.map(|i| flags.overrides.remove(i).value);
            let value = values::parse(&flag.kind, value, earlier)?;
            if !table::NOT_DEPRECATED.contains(&flag.name)
                && !flags.given.iter().rev().skip(1).any(|g| g.0 == flag.name)
            {
                let notice = format!("Flag --{} has been deprecated, set {field} in the file of --config", flag.name);
                flags.notices.push(notice);
            }
            flags.overrides.push(Override { flag: flag.name, field, value });
            Ok(())
        }
        To::Nothing(instead) => {
            values::parse(&flag.kind, value, None)?;
            flags.warnings.push(Warning::of_flag(flag.name, format!("no effect: {instead}")));
            Ok(())
        }
    }
}
