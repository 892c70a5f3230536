//! Bytes to a typed pod: size, encoding, syntax, kind, types, unknown fields.

use model::core::Pod;
use model::json::{self, FromJson};
use serde_json::{Map, Value};

use crate::error::{Fault, FieldError, MAX_MANIFEST_BYTES, ManifestError, Warning};
use crate::yaml;

/// Wrong types reported at once; each costs one more pass over the document.
const MAX_TYPE_ERRORS: usize = 20;
/// Unknown fields reported at once.
const MAX_UNKNOWN: usize = 50;

/// A decoded manifest, not defaulted yet.
pub(crate) struct Decoded {
    pub(crate) pod: Pod,
    pub(crate) warnings: Vec<Warning>,
}

/// Decodes the first document of a manifest.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, ManifestError> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLarge { size: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| ManifestError::NotUtf8 { offset: e.valid_up_to() })?;
    let mut warnings = Vec::new();
    let document = parse(text, &mut warnings)?;
    require_pod_kind(&document)?;
    let pod = to_pod(document.clone())?;
    unknown_fields(&document, &pod, &mut warnings);
    Ok(Decoded { pod, warnings })
}

fn parse(text: &str, warnings: &mut Vec<Warning>) -> Result<Value, ManifestError> {
    let document = yaml::read(text).map_err(|e| {
        let (line, column) = e.at.map_or((0, 0), |at| (at.line, at.column));
        ManifestError::Syntax { line, column, reason: e.reason }
    })?;
    if let Some((at, reason)) = document.duplicate {
        let path = at.map_or_else(|| "manifest".to_owned(), |at| at.to_string());
        warnings.push(Warning { path, reason });
    }
    document.value.ok_or(ManifestError::Empty)
}

fn require_pod_kind(document: &Value) -> Result<(), ManifestError> {
    let Value::Object(fields) = document else {
        return Err(ManifestError::NotAPod(vec![
            FieldError::new("manifest", Fault::Type, "a manifest is a mapping of field names to values")
                .value(document.clone()),
        ]));
    };
    let kind = text_of(fields, "kind");
    let mut faults = Vec::new();
    match kind.as_deref() {
        Some("Pod") => {}
        Some("List" | "PodList") => faults.push(
            FieldError::new("kind", Fault::Unsupported, "a file holds one pod; put each pod into a file of its own")
                .value(kind.clone().unwrap_or_default())
                .allowed("Pod"),
        ),
        _ => faults.push(wrong_word(fields, "kind", "Pod")),
    }
    if text_of(fields, "apiVersion").as_deref() != Some("v1") {
        faults.push(wrong_word(fields, "apiVersion", "v1"));
    }
    if faults.is_empty() { Ok(()) } else { Err(ManifestError::NotAPod(faults)) }
}

fn text_of(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn wrong_word(fields: &Map<String, Value>, key: &str, allowed: &str) -> FieldError {
    match fields.get(key) {
        None | Some(Value::Null) => FieldError::new(key, Fault::Required, "").allowed(allowed),
        Some(Value::String(s)) if s.is_empty() => FieldError::new(key, Fault::Required, "").allowed(allowed),
        Some(value @ Value::String(_)) => FieldError::new(key, Fault::Unsupported, "only pods run from a manifest")
            .value(value.clone())
            .allowed(allowed),
        Some(value) => FieldError::new(key, Fault::Type, "must be a string").value(value.clone()).allowed(allowed),
    }
}

/// Types the document. A field of the wrong type is noted and replaced by something that fits, so that the next one is
/// found as well.
fn to_pod(mut document: Value) -> Result<Pod, ManifestError> {
    let mut faults: Vec<FieldError> = Vec::new();
    let mut tried = 0;
    loop {
        let error = match typed(&document) {
            Ok(pod) if faults.is_empty() => return Ok(pod),
            Ok(_) => return Err(ManifestError::NotAPod(faults)),
            Err(error) => error,
        };
        let place = place_of_fault(&document);
        let path = path_text(&place);
        let node = node_at(&mut document, &place);
        if faults.last().is_some_and(|last| last.path == path) {
            tried += 1;
        } else {
            tried = 0;
            faults.push(type_error(&path, node.as_deref(), &error));
        }
        match (node, placeholder(tried)) {
            (Some(node), Some(placeholder)) if faults.len() < MAX_TYPE_ERRORS => *node = placeholder,
            _ => return Err(ManifestError::NotAPod(faults)),
        }
    }
}

/// The pod that a document is, or what is wrong with the first field that does not fit.
fn typed(document: &Value) -> Result<Pod, String> {
    Pod::from_json(document.to_string().as_bytes()).map_err(|e| {
        let text = e.to_string();
        let place = format!(" at line {} column {}", e.line(), e.column());
        text.strip_suffix(&place).map_or_else(|| text.clone(), str::to_owned)
    })
}

/// A step on the way to a value.
#[derive(Clone)]
enum Step {
    Field(String),
    Item(usize),
}

/// The way to the first value that does not fit. Every field of a pod may be absent, so a value that does not fit does not
/// fit alone either: the way is found by trying the members of each level one by one, without the rest of the document.
fn place_of_fault(document: &Value) -> Vec<Step> {
    let mut way = Vec::new();
    let mut node = document;
    // A mapping or a list that does not even fit when it is empty is the fault itself.
    while empty(node).is_some_and(|empty| typed(&alone(&way, &empty)).is_ok()) {
        let fault = members(node).into_iter().find(|(step, member)| {
            let steps: Vec<Step> = way.iter().chain([step]).cloned().collect();
            typed(&alone(&steps, member)).is_err()
        });
        let Some((step, member)) = fault else { break };
        way.push(step);
        node = member;
    }
    way
}

fn empty(node: &Value) -> Option<Value> {
    match node {
        Value::Object(_) => Some(Value::Object(Map::new())),
        Value::Array(_) => Some(Value::Array(Vec::new())),
        _ => None,
    }
}

fn members(node: &Value) -> Vec<(Step, &Value)> {
    match node {
        Value::Object(fields) => fields.iter().map(|(k, v)| (Step::Field(k.clone()), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (Step::Item(i), v)).collect(),
        _ => Vec::new(),
    }
}

/// A document with nothing but one value; lists on the way to it have no other item.
fn alone(way: &[Step], value: &Value) -> Value {
    way.iter().rev().fold(value.clone(), |inner, step| match step {
        Step::Field(key) => Value::Object(Map::from_iter([(key.clone(), inner)])),
        Step::Item(_) => Value::Array(vec![inner]),
    })
}

/// Values to put in the place of one of the wrong type, one of which every field takes.
fn placeholder(tried: usize) -> Option<Value> {
    [
        Value::Null,
        Value::from(""),
        Value::Object(Map::new()),
        Value::Array(Vec::new()),
        Value::from(0),
        Value::from(false),
    ]
    .into_iter()
    .nth(tried)
}

fn type_error(path: &str, node: Option<&Value>, message: &str) -> FieldError {
    let (found, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let fault = if found.starts_with("invalid value") { Fault::Invalid } else { Fault::Type };
    let mut error = FieldError::new(path, fault, found);
    if let Some(node) = node {
        error = error.value(node.clone());
    }
    if expected.is_empty() { error } else { error.allowed(expected_words(expected)) }
}

/// Serde's and Rust's names of types in words that people who write manifests know.
fn expected_words(expected: &str) -> &str {
    match expected {
        "i32" | "a 32-bit integer" => "a whole number from -2147483648 to 2147483647",
        "i64" => "a whole number",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "IntOrString" => "a whole number or a string",
        "Quantity" => "a quantity such as 500m or 64Mi",
        other if other.starts_with("struct ") || other.chars().next().is_some_and(char::is_uppercase) => "a mapping",
        other => other,
    }
}

fn node_at<'v>(root: &'v mut Value, way: &[Step]) -> Option<&'v mut Value> {
    let mut node = root;
    for step in way {
        node = match step {
            Step::Item(index) => node.as_array_mut()?.get_mut(*index)?,
            Step::Field(key) => node.as_object_mut()?.get_mut(key)?,
        };
    }
    Some(node)
}

fn path_text(way: &[Step]) -> String {
    let mut text = String::new();
    for step in way {
        match step {
            Step::Item(index) => text.push_str(&format!("[{index}]")),
            Step::Field(key) => push_key(&mut text, key),
        }
    }
    if text.is_empty() { "manifest".to_owned() } else { text }
}

fn push_key(path: &mut String, key: &str) {
    if key.contains(['.', '/', '[']) {
        path.push_str(&format!("[{key}]"));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Fields that the document has and the typed pod has not: a kubelet ignores them silently, we say so.
fn unknown_fields(document: &Value, pod: &Pod, warnings: &mut Vec<Warning>) {
    let Ok(known) = json::value(pod) else { return };
    compare("", document, &known, warnings);
}

fn compare(path: &str, given: &Value, known: &Value, warnings: &mut Vec<Warning>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (key, value) in given {
                let mut at = path.to_owned();
                push_key(&mut at, key);
                match known.get(key) {
                    Some(known) => compare(&at, value, known, warnings),
                    None if value.is_null() || warnings.len() >= MAX_UNKNOWN => {}
                    None => warnings.push(Warning { path: at, reason: "unknown field, ignored".to_owned() }),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (i, (given, known)) in given.iter().zip(known).enumerate() {
                compare(&format!("{path}[{i}]"), given, known, warnings);
            }
        }
        _ => {}
    }
}
