//! Managers that run in processes of their own: `--manager`, and `managers` of bosun's own file (`--bosun-config`).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use model::go_duration;
use model::unix_address::UnixAddress;
use serde_json::{Map, Value};

use crate::document;
use crate::error::{ConfigError, Warning};
use crate::flags::Flags;
use crate::nearest::nearest;

/// The managers that may run elsewhere, by the names that the configuration has for them.
pub const REMOTE_MANAGERS: &[&str] = &["images", "probes", "status", "volumes"];

/// What happens while such a manager is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenAway {
    /// The one that is built in takes its place.
    Builtin,
    /// Callers wait for it, as long as their message may take.
    Hold,
    /// Callers get at once what they get of one that crashed.
    Fail,
}

/// A manager in a process of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteManager {
    /// Where it listens.
    pub remote: UnixAddress,
    /// What happens while it is away.
    pub when_away: WhenAway,
    /// With [`WhenAway::Builtin`]: one that goes within this time after it came has to stay away for as long at least.
    pub probation: Duration,
}

/// By their names.
pub type RemoteManagers = BTreeMap<String, RemoteManager>;

const WORDS: &str = "builtin, hold, fail";
const FIELDS: [&str; 3] = ["remote", "whenAway", "probation"];
const PROBATION: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Those of the file and of flags; a flag replaces what the file says of that manager.
pub(crate) fn read(flags: &Flags, errors: &mut Vec<ConfigError>, warnings: &mut Vec<Warning>) -> RemoteManagers {
    let mut all = RemoteManagers::new();
    if let Some(file) = &flags.bosun_config {
        let origin = file.display().to_string();
        let mut found = Vec::new();
        let fields = of_file(file, warnings).unwrap_or_else(|e| {
            found.push(e);
            Map::new()
        });
        for (name, value) in fields {
            of_manager(&format!("managers.{name}"), &name, &value, &mut all, &mut found);
        }
        errors.extend(found.into_iter().map(|e| e.at(&origin)));
    }
    for text in &flags.managers {
        let mut found = Vec::new();
        match of_flag(text) {
            Ok((name, value)) => of_manager("", &name, &value, &mut all, &mut found),
            Err(e) => found.push(e),
        }
        errors.extend(found.into_iter().map(|e| e.at("--manager")));
    }
    all
}

/// The field `managers` of bosun's own file, the only one that it has.
fn of_file(file: &Path, warnings: &mut Vec<Warning>) -> Result<Map<String, Value>, ConfigError> {
    let mut odd = Vec::new();
    let document = document::value(&document::read_text(file)?, &mut odd)?;
    let origin = file.display().to_string();
    warnings.extend(odd.into_iter().map(|w| Warning { origin: origin.clone(), ..w }));
    let mut fields = match document {
        Some(Value::Object(fields)) => fields,
        None => Map::new(),
        Some(other) => return Err(ConfigError::whole_file("must be a mapping of field names to values").value(&other)),
    };
    let managers = fields.remove("managers").unwrap_or(Value::Null);
    if let Some((name, value)) = fields.into_iter().next() {
        return Err(ConfigError::new(name, "unknown field").value(&value).allowed("managers"));
    }
    match managers {
        Value::Null => Ok(Map::new()),
        Value::Object(managers) => Ok(managers),
        other => Err(ConfigError::new("managers", "must be a mapping of managers").value(&other)),
    }
}

/// `probes=unix:///run/acme/probes.sock,whenAway=hold`, in the form of the file.
fn of_flag(text: &str) -> Result<(String, Value), ConfigError> {
    let wrong = |reason: &str| {
        let allowed = "NAME=unix:///PATH[,whenAway=builtin|hold|fail][,probation=60s]";
        ConfigError::new("", reason).value(&text.into()).allowed(allowed)
    };
    let (name, rest) = text.split_once('=').ok_or_else(|| wrong("names no address"))?;
    let mut parts = rest.split(',');
    let mut fields = Map::from_iter([("remote".to_owned(), parts.next().unwrap_or_default().into())]);
    for part in parts {
        let (field, value) = part.split_once('=').ok_or_else(|| wrong("has a part without '='"))?;
        if fields.insert(field.to_owned(), value.into()).is_some() {
            return Err(wrong("says something twice"));
        }
    }
    Ok((name.to_owned(), fields.into()))
}

/// What a command says of one: `bosun manager swap NAME --to ADDRESS`.
///
/// # Errors
/// All that is wrong with it, by flag.
pub fn chosen(to: &str, when_away: Option<&str>, probation: Option<&str>) -> Result<RemoteManager, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let value = |text: Option<&str>| text.map(Value::from);
    let mut note = |flag: &str, e: ConfigError| errors.push(e.path(flag));
    let remote = remote(Some(&to.into())).map_err(|e| note("--to", e)).ok();
    let when_away = self::when_away(value(when_away).as_ref()).map_err(|e| note("--when-away", e)).ok();
    let probation = self::probation(value(probation).as_ref()).map_err(|e| note("--probation", e)).ok();
    match (remote, when_away, probation) {
        (Some(remote), Some(when_away), Some(probation)) => Ok(RemoteManager { remote, when_away, probation }),
        _ => Err(errors),
    }
}

/// One manager; all that is wrong with it.
fn of_manager(path: &str, name: &str, value: &Value, all: &mut RemoteManagers, errors: &mut Vec<ConfigError>) {
    if !REMOTE_MANAGERS.contains(&name) {
        let hint = nearest(name, REMOTE_MANAGERS.iter().copied()).map(|n| format!("; did you mean {n}?"));
        let reason = format!("is no manager that may run elsewhere{}", hint.unwrap_or_default());
        let error = ConfigError::new(path, reason).value(&name.into());
        return errors.push(error.allowed(REMOTE_MANAGERS.join(", ")));
    }
    let Value::Object(fields) = value else {
        let error = ConfigError::new(path, "must be a mapping").value(value);
        return errors.push(error.allowed(FIELDS.join(", ")));
    };
    let before = errors.len();
    let at = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
    for (field, value) in fields.iter().filter(|(field, _)| !FIELDS.contains(&field.as_str())) {
        errors.push(ConfigError::new(at(field), "unknown field").value(value).allowed(FIELDS.join(", ")));
    }
    let remote = remote(fields.get("remote")).map_err(|e| errors.push(e.path(at("remote")))).ok();
    let when_away = when_away(fields.get("whenAway")).map_err(|e| errors.push(e.path(at("whenAway")))).ok();
    let probation = probation(fields.get("probation")).map_err(|e| errors.push(e.path(at("probation")))).ok();
    if let (Some(remote), Some(when_away), Some(probation), true) =
        (remote, when_away, probation, errors.len() == before)
    {
        all.insert(name.to_owned(), RemoteManager { remote, when_away, probation });
    }
}

fn remote(value: Option<&Value>) -> Result<UnixAddress, ConfigError> {
    const ALLOWED: &str = "unix:///absolute/path";
    let Some(value) = value else { return Err(ConfigError::whole_file("must be given").allowed(ALLOWED)) };
    let wrong = |reason: String| ConfigError::whole_file(reason).value(value).allowed(ALLOWED);
    let text = value.as_str().ok_or_else(|| wrong("must be a text".to_owned()))?;
    UnixAddress::parse(text).map_err(|e| wrong(e.to_string()))
}

fn when_away(value: Option<&Value>) -> Result<WhenAway, ConfigError> {
    match value.map(|v| v.as_str()) {
        None | Some(Some("builtin")) => Ok(WhenAway::Builtin),
        Some(Some("hold")) => Ok(WhenAway::Hold),
        Some(Some("fail")) => Ok(WhenAway::Fail),
        Some(_) => {
            let value = value.unwrap_or(&Value::Null);
            Err(ConfigError::whole_file("is none of the words for it").value(value).allowed(WORDS))
        }
    }
}

fn probation(value: Option<&Value>) -> Result<Duration, ConfigError> {
    let Some(value) = value else { return Ok(PROBATION) };
    let wrong = |reason: String| ConfigError::whole_file(reason).value(value).allowed("0s to 1h, as in 60s or 1m30s");
    let text = value.as_str().ok_or_else(|| wrong("must be a duration".to_owned()))?;
    let read = go_duration::parse(text).map_err(|e| wrong(e.to_string()))?;
    if read <= LONGEST { Ok(read) } else { Err(wrong("is out of range".to_owned())) }
}
