//! In what two documents differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// One place in which they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, as a JSON pointer; empty: in all of it.
    pub at: String,
    /// What stands there in the first; absent: nothing.
    pub ours: Option<String>,
    /// What stands there in the second.
    pub theirs: Option<String>,
}

/// Longest content that is repeated.
const LONGEST: usize = 80;

/// The first `most` places in which two documents differ, outermost first in each branch.
#[must_use]
pub fn differences(ours: Option<&Value>, theirs: Option<&Value>, most: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(&mut String::new(), ours, theirs, most, &mut found);
    found
}

fn walk(at: &mut String, ours: Option<&Value>, theirs: Option<&Value>, most: usize, found: &mut Vec<Difference>) {
    if ours == theirs || found.len() >= most {
        return;
    }
    match (ours, theirs) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                below(at, key, (a.get(key), b.get(key)), most, found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                below(at, &index.to_string(), (a.get(index), b.get(index)), most, found);
            }
        }
        _ => found.push(Difference { at: at.clone(), ours: ours.map(short), theirs: theirs.map(short) }),
    }
}

fn below(
    at: &mut String,
    key: &str,
    (ours, theirs): (Option<&Value>, Option<&Value>),
    most: usize,
    found: &mut Vec<Difference>,
) {
    let length = at.len();
    at.push('/');
    at.push_str(&key.replace('~', "~0").replace('/', "~1"));
    walk(at, ours, theirs, most, found);
    at.truncate(length);
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(ours: Option<&Value>, theirs: Option<&Value>, most: usize) -> Vec<String> {
        let line = |d: Difference| {
            let words = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            format!("{}: {} | {}", d.at, words(d.ours), words(d.theirs))
        };
        differences(ours, theirs, most).into_iter().map(line).collect()
    }

    #[test]
    fn each_place_that_differs_is_told_once() {
        let ours = json!({"a": {"b": 1, "c": [1, 2]}, "same": [1], "x/y": 1});
        let theirs = json!({"a": {"b": 2, "c": [1]}, "same": [1], "new": null, "x/y": 2});
        let all = ["/a/b: 1 | 2", "/a/c/1: 2 | -", "/new: - | null", "/x~1y: 1 | 2"];
        assert_eq!(told(Some(&ours), Some(&theirs), 10), all);
        assert_eq!(told(Some(&ours), Some(&theirs), 2), all[..2]);
        assert!(told(Some(&ours), Some(&ours), 10).is_empty() && told(None, None, 10).is_empty());
        assert_eq!(told(Some(&json!([])), None, 10), [": [] | -"]);
        assert_eq!(told(Some(&json!({})), Some(&json!([])), 10), [": {} | []"]);
        let long = "ä".repeat(200);
        assert_eq!(differences(Some(&json!(long)), None, 1)[0].ours.as_ref().map(|t| t.chars().count()), Some(83));
    }
}
