//! Configurations: lists of plugins (`.conflist`) and single ones (`.conf`, `.json`), of a folder in the order of their names.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{CniError, failed};

/// Bytes of a configuration.
pub(crate) const MAX_FILE: u64 = 1 << 20;
/// Plugins of one network.
const MAX_PLUGINS: usize = 64;
/// The newest version that is spoken here.
const NEWEST: (u32, u32, u32) = (1, 1, 0);
/// What a configuration without a version means (`CNI spec`, "cniVersion").
const OLDEST: &str = "0.1.0";
const KINDS: [&str; 3] = ["conflist", "conf", "json"];

/// One plugin of a network: its configuration as it stands in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// The program's name.
    pub kind: String,
    pub(crate) conf: Map<String, Value>,
}

impl Plugin {
    /// Whether the plugin wants to know something of the runtime.
    pub(crate) fn wants(&self, capability: &str) -> bool {
        self.conf.get("capabilities").and_then(|c| c.get(capability)) == Some(&Value::Bool(true))
    }
}

/// A network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkList {
    /// Its name.
    pub name: String,
    /// The version that its plugins are spoken to in.
    pub version: String,
    /// Plugins in the order in which they add.
    pub plugins: Vec<Plugin>,
    pub(crate) disable_check: bool,
    pub(crate) disable_gc: bool,
    /// The file's own bytes.
    pub(crate) bytes: Vec<u8>,
}

/// A file that is no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub file: PathBuf,
    /// Why not.
    pub reason: String,
}

/// A version's numbers.
pub(crate) fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = parts.next().unwrap_or(Some(0))?;
    parts.next().is_none().then_some((major, minor, patch))
}

impl NetworkList {
    /// Whether the network's version is at least this one.
    pub(crate) fn since(&self, version: (u32, u32, u32)) -> bool {
        numbers(&self.version).is_some_and(|own| own >= version)
    }

    /// Reads a list, or a single plugin as a list of one.
    ///
    /// # Errors
    /// What is wrong with it, in plain words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let all: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let name = name(&all)?;
        let version = version(&all)?;
        let plugins = match all.get("plugins") {
            Some(Value::Array(plugins)) => plugins.iter().map(plugin).collect::<Result<Vec<_>, _>>()?,
            Some(_) => return Err("`plugins` is no list".into()),
            None => vec![plugin(&Value::Object(all.clone()))?],
        };
        if plugins.is_empty() || plugins.len() > MAX_PLUGINS {
            return Err(format!("{} plugins", plugins.len()));
        }
        let disable_check = truth(&all, "disableCheck")?;
        let disable_gc = truth(&all, "disableGC")?;
        Ok(Self { name, version, plugins, disable_check, disable_gc, bytes: bytes.to_vec() })
    }
}

/// A name becomes part of file names: letters, digits, `_`, `.` and `-`, not first (libcni's rule).
fn name(all: &Map<String, Value>) -> Result<String, String> {
    let name = all.get("name").and_then(Value::as_str).ok_or("no `name`")?;
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if first && name.chars().all(good) { Ok(name.to_owned()) } else { Err(format!("{name:?} is no name of a network")) }
}

/// The newest of `cniVersions` and `cniVersion` that is spoken here.
fn version(all: &Map<String, Value>) -> Result<String, String> {
    let own = match all.get("cniVersion") {
        None => None,
        Some(Value::String(own)) => Some(own.as_str()),
        Some(_) => return Err("`cniVersion` is no text".into()),
    };
    let listed = match all.get("cniVersions") {
        None => &[][..],
        Some(Value::Array(all)) => all,
        Some(_) => return Err("`cniVersions` is no list".into()),
    };
    let mut versions = Vec::new();
    for version in own.into_iter().chain(listed.iter().filter_map(Value::as_str)) {
        let numbers = numbers(version).ok_or_else(|| format!("{version:?} is no version"))?;
        versions.push((numbers, version.to_owned()));
    }
    let newest = versions.iter().filter(|(n, _)| *n <= NEWEST).max();
    match (newest, versions.first()) {
        (Some((_, version)), _) => Ok(version.clone()),
        (None, Some((_, version))) => Err(format!("CNI {version} is newer than what is spoken here")),
        (None, None) => Ok(OLDEST.to_owned()),
    }
}

/// `true`, also as text, which libcni takes.
fn truth(all: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match all.get(key) {
        None => Ok(false),
        Some(Value::Bool(b)) => Ok(*b),
        Some(Value::String(s)) if s.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(s)) if s.eq_ignore_ascii_case("false") => Ok(false),
        Some(other) => Err(format!("`{key}` is {other}")),
    }
}

/// A plugin's name is that of a program in one of the folders of plugins, and nothing else.
fn plugin(value: &Value) -> Result<Plugin, String> {
    let Value::Object(conf) = value else { return Err("a plugin that is no object".into()) };
    let kind = conf.get("type").and_then(Value::as_str).ok_or("a plugin without `type`")?;
    if kind.is_empty() || kind.contains('/') || kind.starts_with('.') {
        return Err(format!("{kind:?} is no name of a plugin"));
    }
    Ok(Plugin { kind: kind.to_owned(), conf: conf.clone() })
}

/// All configurations of a folder in the order of their names, and those that are broken.
///
/// # Errors
/// The folder cannot be read. One that is not there is empty.
pub fn load_all(folder: &Path) -> Result<(Vec<NetworkList>, Vec<Broken>), CniError> {
    let named = || format!("read {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
        Err(e) => return Err(failed(named())(e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed(named()))?.path();
        if path.extension().is_some_and(|e| KINDS.iter().any(|k| e == *k)) {
            files.push(path);
        }
    }
    files.sort();
    let (mut lists, mut broken) = (Vec::new(), Vec::new());
    for file in files {
        match read(&file).and_then(|bytes| NetworkList::parse(&bytes)) {
            Ok(list) => lists.push(list),
            Err(reason) => broken.push(Broken { file, reason }),
        }
    }
    Ok((lists, broken))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(|e| e.to_string())?;
    opened.take(MAX_FILE).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// The network of pods: the first one of a folder.
///
/// # Errors
/// There is none; the error says which files are broken.
pub fn find(folder: &Path) -> Result<NetworkList, CniError> {
    let (mut lists, broken) = load_all(folder)?;
    if !lists.is_empty() {
        return Ok(lists.remove(0));
    }
    let because = broken.first().map(|b| format!(" ({}: {})", b.file.display(), b.reason)).unwrap_or_default();
    Err(CniError::NoConfiguration { folder: folder.display().to_string(), because })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        for (text, want) in [
            ("0.3.1", Some((0, 3, 1))),
            ("1.0.0", Some((1, 0, 0))),
            ("1.1", Some((1, 1, 0))),
            ("1", None),
            ("1.0.0.0", None),
            ("a.b", None),
        ] {
            assert_eq!(numbers(text), want, "{text}");
        }
    }

    #[test]
    fn configurations_are_read_as_libcni_reads_them() {
        let rows = [
            (r#"{"name":"n","cniVersion":"0.4.0","plugins":[{"type":"a"},{"type":"b"}]}"#, Ok(("0.4.0", 2))),
            (r#"{"name":"n","cniVersion":"1.0.0","type":"a"}"#, Ok(("1.0.0", 1))),
            (r#"{"name":"n","type":"a"}"#, Ok(("0.1.0", 1))),
            (r#"{"name":"n","type":"a","cniVersion":"0.4.0","cniVersions":["1.1.0","9.0.0"]}"#, Ok(("1.1.0", 1))),
            (r#"{"name":"n","type":"a","cniVersion":"9.0.0"}"#, Err("newer than")),
            (r#"{"cniVersion":"1.0.0","type":"a"}"#, Err("no `name`")),
            (r#"{"name":"../n","type":"a"}"#, Err("no name of a network")),
            (r#"{"name":"n","plugins":[]}"#, Err("0 plugins")),
            (r#"{"name":"n","plugins":[{"type":"../sh"}]}"#, Err("no name of a plugin")),
            (r#"{"name":"n","plugins":{}}"#, Err("no list")),
            (r#"{"name":"n","type":"a","disableCheck":"maybe"}"#, Err("disableCheck")),
            ("{", Err("EOF")),
        ];
        for (text, want) in rows {
            let list = NetworkList::parse(text.as_bytes());
            match (&list, want) {
                (Ok(list), Ok((version, plugins))) => {
                    assert_eq!((list.version.as_str(), list.plugins.len()), (version, plugins), "{text}");
                }
                (Err(e), Err(part)) => assert!(e.contains(part), "{text}: {e}"),
                _ => panic!("{text}: {list:?}"),
            }
        }
    }

    #[test]
    fn the_first_good_file_counts() {
        let folder = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("write");
        assert!(find(folder.path()).is_err());
        put("10-broken.conflist", "{");
        put("00-not.txt", r#"{"name":"x","type":"a"}"#);
        let none = find(folder.path()).expect_err("broken").to_string();
        assert!(none.contains("10-broken.conflist"), "{none}");
        put("30-late.conf", r#"{"name":"late","type":"a"}"#);
        put("20-early.json", r#"{"name":"early","type":"a"}"#);
        assert_eq!(find(folder.path()).expect("found").name, "early");
        let (all, broken) = load_all(folder.path()).expect("read");
        assert_eq!((all.len(), broken.len()), (2, 1));
        assert!(find(&folder.path().join("none")).is_err());
    }
}
