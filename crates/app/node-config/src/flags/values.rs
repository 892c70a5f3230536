//! Values of flags as JSON, as the field of the configuration that they stand for has them.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use model::go_duration;

/// Form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// `--x` or `--x=true`, never `--x true`.
    Switch,
    Number,
    Duration,
    Text,
    /// Text that must not be shown.
    Secret,
    Address,
    List,
    /// Names and values, with what stands between them.
    Pairs(char),
    Gates,
    Headers,
    Taints,
    Memory,
    Modules,
}

/// Reads a value. `earlier` is what the same flag said before on this command line: lists and maps grow.
pub(super) fn parse(kind: &Kind, text: &str, earlier: Option<Value>) -> Result<Value, String> {
    match kind {
        Kind::Switch => bool(text).map(Value::Bool),
        Kind::Number => int(text).map(Value::from),
        Kind::Duration => duration(text),
        Kind::Text | Kind::Secret => Ok(Value::from(text)),
        Kind::Address => match text.parse::<IpAddr>() {
            Ok(_) => Ok(Value::from(text)),
            Err(_) => Err("is not an IP address".to_owned()),
        },
        Kind::List => Ok(list(text, earlier)),
        Kind::Pairs(separator) => pairs(text, *separator, earlier),
        Kind::Gates => gates(text, earlier),
        Kind::Headers => headers(text, earlier),
        Kind::Taints => taints(text, earlier),
        Kind::Memory => memory(text, earlier),
        Kind::Modules => modules(text),
    }
}

/// As Go's `strconv.ParseBool`.
pub(super) fn bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("is neither true nor false".to_owned()),
    }
}

/// A whole number, decimal or with 0x, 0o, 0b.
pub(super) fn int(text: &str) -> Result<i64, String> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let bases = [("0x", 16), ("0X", 16), ("0o", 8), ("0b", 2)];
    let (digits, base) =
        bases.iter().find_map(|(p, base)| digits.strip_prefix(p).map(|d| (d, *base))).unwrap_or((digits, 10));
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    let number = plain.then(|| i64::from_str_radix(digits, base).ok()).flatten();
    number.map(|n| if negative { -n } else { n }).ok_or_else(|| "is not a whole number".to_owned())
}

fn duration(text: &str) -> Result<Value, String> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    go_duration::parse(unsigned).map_err(|e| format!("{e}; write it as in 20s, 1m30s or 100ms"))?;
    Ok(Value::from(text))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|w| !w.is_empty())
}

fn list(text: &str, earlier: Option<Value>) -> Value {
    let mut all = match earlier {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.extend(words(text).map(Value::from));
    Value::Array(all)
}

fn object(earlier: Option<Value>) -> Map<String, Value> {
    match earlier {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    }
}

/// `name=value,name=value`.
pub(super) fn each_pair(text: &str, separator: char) -> Result<Vec<(&str, &str)>, String> {
    let pair = |word| match str::split_once(word, separator) {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(format!("{word:?} is not of the form name{separator}value")),
    };
    words(text).map(pair).collect()
}

fn pairs(text: &str, separator: char, earlier: Option<Value>) -> Result<Value, String> {
    let mut all = object(earlier);
    for (name, value) in each_pair(text, separator)? {
        all.insert(name.to_owned(), Value::from(value));
    }
    Ok(Value::Object(all))
}

fn gates(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let mut all = object(earlier);
    for (name, value) in each_pair(text, '=')? {
        let on = bool(value).map_err(|e| format!("invalid value of {name}={value}: {e}"))?;
        all.insert(name.to_owned(), Value::Bool(on));
    }
    Ok(Value::Object(all))
}

/// `name:value,name:value`; a name may come again.
fn headers(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let mut all = object(earlier);
    for (name, value) in each_pair(text, ':').map_err(|_| "is not of the form name:value".to_owned())? {
        if let Some(values) = all.entry(name).or_insert_with(|| json!([])).as_array_mut() {
            values.push(Value::from(value));
        }
    }
    Ok(Value::Object(all))
}

/// `key=value:Effect`, `key:Effect`.
fn taints(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let mut all = match earlier {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    for word in words(text) {
        let wrong = || format!("{word:?} is not of the form key=value:Effect or key:Effect");
        let (left, effect) = word.rsplit_once(':').ok_or_else(wrong)?;
        let (key, value) = left.split_once('=').unwrap_or((left, ""));
        if key.is_empty() || effect.is_empty() || value.contains('=') {
            return Err(wrong());
        }
        all.push(json!({ "key": key, "value": value, "effect": effect }));
    }
    Ok(Value::Array(all))
}

/// `0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=1Gi`.
fn memory(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let mut all = match earlier {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    for node in text.split(';').filter(|n| !n.is_empty()) {
        let (number, limits) = node.split_once(':').ok_or("is not of the form node:name=quantity,...")?;
        let number = int(number.trim())?;
        all.push(json!({ "numaNode": number, "limits": pairs(limits, '=', None)? }));
    }
    Ok(Value::Array(all))
}

/// `pattern=N,...`; a later flag replaces an earlier one.
fn modules(text: &str) -> Result<Value, String> {
    let mut all = Vec::new();
    for (pattern, level) in each_pair(text, '=')? {
        all.push(json!({ "filePattern": pattern, "verbosity": int(level)? }));
    }
    Ok(Value::Array(all))
}
