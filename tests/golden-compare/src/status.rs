//! Brings statuses into one form.

use serde_json::{Value, json};

/// Ids, times and addresses go; what the runtime calls the image is the runtime's business.
pub fn tidy(value: &mut Value, uid: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|v| tidy(v, uid)),
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            for key in ["containerID", "podIP", "ip", "lastTransitionTime", "startedAt", "finishedAt", "startTime"] {
                if let Some(v) = map.get_mut(key) {
                    *v = json!("<set>");
                }
            }
            if map.contains_key("imageID") {
                map.remove("image");
            }
            map.values_mut().for_each(|v| tidy(v, uid));
        }
        Value::String(s) => *s = s.replace(uid, "<uid>"),
        _ => {}
    }
}

/// Lists of a status have names, not places.
pub fn by_name(status: &mut Value) {
    for (list, key) in [("conditions", "type"), ("containerStatuses", "name"), ("initContainerStatuses", "name")] {
        if let Some(items) = status.get(list).and_then(Value::as_array) {
            let named = items.iter().map(|i| (i[key].as_str().unwrap_or_default().to_owned(), i.clone()));
            status[list] = Value::Object(named.collect());
        }
    }
}

/// Types of conditions as they are listed.
pub fn condition_order(status: &Value) -> Vec<Value> {
    status["conditions"].as_array().into_iter().flatten().map(|c| c["type"].clone()).collect()
}
