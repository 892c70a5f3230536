//! Defaults < `--config` < drop-ins < flags (interfaces 1.1, 1.2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::config::NodeConfig;
use crate::document;
use crate::error::{ConfigError, ConfigErrors, Warning};
use crate::findings::Findings;
use crate::flags::{self, Flags};
use crate::managers::{self, RemoteManagers};
use crate::read;

/// A configuration, and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub struct Configured {
    /// What the node runs with.
    pub config: NodeConfig,
    /// What is odd, of flags and files.
    pub warnings: Vec<Warning>,
    /// The files that were read, in the order in which they were merged.
    pub files: Vec<PathBuf>,
    /// The merged document without defaults: the fields of a KubeletConfiguration.
    pub document: Map<String, Value>,
    /// Managers that run in processes of their own.
    pub managers: RemoteManagers,
}

/// What bare flags stand on. A configuration file has safer defaults; drop-ins alone do not bring them
/// (interfaces 1.1, "two default sets").
fn without_file() -> Map<String, Value> {
    let fields = json!({
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "readOnlyPort": 10255,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Puts files and flags together and checks the result.
///
/// # Errors
/// Everything that is wrong with flags and files, together. When a file cannot be read as a KubeletConfiguration at all, the
/// rules over several fields are not checked.
pub fn configure(flags: &Flags) -> Result<Configured, ConfigErrors> {
    let mut errors = flags::check(flags);
    let mut warnings = flags.warnings.clone();
    let mut files = Vec::new();
    let mut merged = Merged::default();
    match &flags.config {
        None => merged.merge(without_file(), ""),
        Some(file) => {
            files.push(file.clone());
            match main_file(file, &mut warnings) {
                Ok(fields) => merged.merge(fields, &file.display().to_string()),
                Err(error) => errors.push(error),
            }
        }
    }
    report_frequency(&mut merged.fields);
    for drop_in in flags.config_dir.as_deref().map(|dir| drop_ins(dir, &mut errors)).unwrap_or_default() {
        match one_file(&drop_in, &mut warnings) {
            Ok(fields) => merged.merge(fields, &drop_in.display().to_string()),
            Err(error) => errors.push(error),
        }
        files.push(drop_in);
    }
    // A kubelet refuses the empty endpoint of a flag, while the empty one of a file is as good as absent.
    for o in flags.overrides.iter().filter(|o| o.field == "containerRuntimeEndpoint" && o.value == "") {
        let error = ConfigError::new(o.field, "must name a socket")
            .value(&o.value)
            .allowed("unix:///absolute/path, embedded://");
        errors.push(error.at(format!("--{}", o.flag)));
    }
    let unreadable = errors.iter().any(|e| !e.origin.starts_with("--"));
    let managers = managers::read(flags, &mut errors, &mut warnings);
    for o in &flags.overrides {
        merged.set(o.field, o.value.clone(), &format!("--{}", o.flag));
    }
    let fallback = flags.config.as_ref().map_or_else(|| "flags".to_owned(), |f| f.display().to_string());
    let document = merged.fields.clone();
    let (config, found) = match read::read(merged.fields.clone(), Vec::new()) {
        Ok((config, warnings)) => (Some(config), Findings { errors: Vec::new(), warnings }),
        // What a file that cannot be read would have said is not known.
        Err(found) if unreadable => (None, Findings { errors: Vec::new(), ..found }),
        Err(found) => (None, found),
    };
    let placed = |e: ConfigError| ConfigError { origin: merged.origin(&e.path, &fallback), ..e };
    errors.extend(found.errors.into_iter().map(placed));
    warnings.extend(found.warnings.into_iter().map(|w| Warning { origin: merged.origin(&w.path, &fallback), ..w }));
    match config {
        Some(config) if errors.is_empty() => Ok(Configured { config, warnings, files, document, managers }),
        _ => Err(ConfigErrors { errors, warnings }),
    }
}

fn main_file(file: &Path, warnings: &mut Vec<Warning>) -> Result<Map<String, Value>, ConfigError> {
    let mut fields = one_file(file, warnings)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    document::resolve_paths(&mut fields, &folder);
    read::default_thresholds(&mut fields);
    Ok(fields)
}

/// The fields of a file; oddities of its form become warnings.
pub(crate) fn one_file(file: &Path, warnings: &mut Vec<Warning>) -> Result<Map<String, Value>, ConfigError> {
    let origin = file.display().to_string();
    let text = document::read_text(file).map_err(|e| e.at(&origin))?;
    let mut found = Vec::new();
    let fields = document::parse(&text, &mut found).map_err(|e| e.at(&origin))?;
    warnings.extend(found.into_iter().map(|w| Warning { origin: origin.clone(), ..w }));
    Ok(fields)
}

/// The base has its report frequency before drop-ins are merged: it follows the update frequency of the same file, not one that
/// a drop-in sets.
fn report_frequency(fields: &mut Map<String, Value>) {
    let given = |name: &str| match fields.get(name) {
        Some(Value::String(s)) if s.is_empty() || s == "0s" || s == "0" => None,
        None | Some(Value::Null) => None,
        Some(value) => Some(value.clone()),
    };
    if given("nodeStatusReportFrequency").is_none() {
        let update = given("nodeStatusUpdateFrequency").unwrap_or_else(|| Value::from("5m"));
        fields.insert("nodeStatusReportFrequency".to_owned(), update);
    }
}

/// Files whose name ends with `.conf`, in the lexical order of a walk through the tree.
fn drop_ins(dir: &Path, errors: &mut Vec<ConfigError>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Err((at, e)) = walk(dir, &mut found) {
        let error = ConfigError::whole_file(format!("cannot be read as a folder of --config-dir: {e}"));
        errors.push(error.at(at.display().to_string()));
    }
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let here = |e| (dir.to_owned(), e);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(here)? {
        let entry = entry.map_err(here)?;
        entries.push((entry.file_name(), entry.file_type().map_err(here)?));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in entries {
        let path = dir.join(&name);
        if kind.is_dir() {
            walk(&path, found)?;
        } else if name.to_string_lossy().ends_with(".conf") {
            found.push(path);
        }
    }
    Ok(())
}

/// Fields of all layers so far, and which layer each came from.
#[derive(Default)]
struct Merged {
    fields: Map<String, Value>,
    /// By key path.
    origins: BTreeMap<String, String>,
}

impl Merged {
    /// JSON merge patch (RFC 7386): objects merge, lists replace, null deletes.
    fn merge(&mut self, patch: Map<String, Value>, origin: &str) {
        note(&mut self.origins, "", &Value::Object(patch.clone()), origin);
        merge(&mut self.fields, patch);
    }

    /// A flag replaces a whole field, but for feature gates, which are joined.
    fn set(&mut self, field: &'static str, value: Value, origin: &str) {
        if field != "featureGates" {
            remove(&mut self.fields, field);
        }
        let patch = field.rsplit('.').fold(value, |inner, key| json!({ key: inner }));
        if let Value::Object(patch) = patch {
            self.merge(patch, origin);
        }
    }

    /// Where the value at a key path came from.
    fn origin(&self, path: &str, fallback: &str) -> String {
        let plain = path.split('[').next().unwrap_or(path);
        let mut at = plain;
        loop {
            let own = self.origins.get(at).or_else(|| {
                let below = format!("{at}.");
                let mut range = self.origins.range(below.clone()..);
                range.next().filter(|(k, _)| k.starts_with(&below)).map(|(_, v)| v)
            });
            match own {
                Some(origin) if !origin.is_empty() => return origin.clone(),
                _ => {}
            }
            match at.rsplit_once('.') {
                Some((parent, _)) => at = parent,
                None => return fallback.to_owned(),
            }
        }
    }
}

fn note(origins: &mut BTreeMap<String, String>, path: &str, value: &Value, origin: &str) {
    match value {
        Value::Object(fields) if path.is_empty() || !fields.is_empty() => {
            for (key, inner) in fields {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                note(origins, &below, inner, origin);
            }
        }
        _ => drop(origins.insert(path.to_owned(), origin.to_owned())),
    }
}

fn merge(into: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => drop(into.remove(&key)),
            Value::Object(inner) => {
                let slot = into.entry(key).or_insert_with(|| json!({}));
                if !slot.is_object() {
                    *slot = json!({});
                }
                if let Value::Object(fields) = slot {
                    merge(fields, inner);
                }
            }
            other => drop(into.insert(key, other)),
        }
    }
}

fn remove(fields: &mut Map<String, Value>, path: &str) {
    match path.split_once('.') {
        None => drop(fields.remove(path)),
        Some((first, rest)) => {
            if let Some(Value::Object(inner)) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}
