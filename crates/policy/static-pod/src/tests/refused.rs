//! One line per rule of create-validation, in `refused.txt` and `references.txt`.

use super::*;

/// Changes of a pod, and where the fault is told.
struct Row<'a> {
    changes: Vec<(&'a str, Value)>,
    at: String,
}

impl<'a> Row<'a> {
    /// Of `path = json && path = json @ at`.
    fn read(line: &'a str) -> Self {
        let (changes, at) = line.split_once(" @ ").unwrap_or((line, ""));
        let change = |change: &'a str| {
            let (path, json) = change.split_once(" = ").unwrap_or_else(|| panic!("no value: {line}"));
            (path, serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {line}")))
        };
        let changes: Vec<_> = changes.split(" && ").map(change).collect();
        let at = if at.starts_with(['.', '[']) || at.is_empty() { shown(changes[0].0) + at } else { at.to_owned() };
        Self { changes, at }
    }

    fn error(&self, mut pod: Value) -> ManifestError {
        for (path, value) in &self.changes {
            put(&mut pod, path, value.clone());
        }
        match read_json(&pod) {
            Ok(_) => panic!("{:?}: accepted", self.changes),
            Err(error) => error,
        }
    }
}

/// `spec.containers.0.name` as errors have it.
fn shown(path: &str) -> String {
    let part = |part: &str| if part.parse::<usize>().is_ok() { format!("[{part}]") } else { format!(".{part}") };
    path.split('.').map(part).collect::<String>()[1..].to_owned()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn refuses_what_create_validation_refuses() {
    for line in lines(include_str!("refused.txt")) {
        let (fault, changes) = line.split_once(' ').unwrap();
        let row = Row::read(changes.trim_start());
        let error = row.error(rich());
        let told = faults(&error).into_iter().map(|(at, fault)| (at, format!("{fault:?}")));
        assert_eq!(told.collect::<Vec<_>>(), [(row.at, fault.to_owned())], "{line}: {error}");
    }
}

#[test]
fn refuses_what_is_too_long() {
    let restart = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}});
    let rows: [(&str, Value, Fault); 7] = [
        ("metadata.name", json!("a".repeat(250)), Fault::Invalid),
        ("metadata.labels.app", json!("x".repeat(64)), Fault::Invalid),
        ("metadata.annotations.big", json!("x".repeat(300_000)), Fault::TooLong),
        ("spec.hostnameOverride", json!("a".repeat(65)), Fault::TooLong),
        ("spec.dnsConfig.searches", json!(vec!["a"; 33]), Fault::TooLong),
        ("spec.dnsConfig.searches", json!(vec!["a.".repeat(100); 11]), Fault::TooLong),
        ("spec.containers.0.restartPolicyRules", json!(vec![restart; 21]), Fault::TooLong),
    ];
    for (path, value, fault) in rows {
        let at = match path {
            "metadata.labels.app" => "metadata.labels[app]".to_owned(),
            "metadata.annotations.big" => "metadata.annotations".to_owned(),
            path => shown(path),
        };
        let error = Row { changes: vec![(path, value)], at: at.clone() }.error(rich());
        assert_eq!(faults(&error), [(at, fault)], "{path}: {error}");
    }
}

#[test]
fn refuses_references_to_api_objects() {
    let plain = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
    for line in lines(include_str!("references.txt")) {
        let (changes, resource) = line.split_once(" | ").unwrap();
        let row = Row::read(changes);
        let error = row.error(plain.clone());
        assert_eq!(faults(&error), [(row.at, Fault::Forbidden)], "{line}: {error}");
        let text = error.to_string();
        assert!(text.ends_with(&format!("static pods may not reference {resource}")), "{text}");
    }
}

#[test]
fn reports_all_faults_at_once() {
    let mut pod = rich();
    put(&mut pod, "metadata.namespace", json!("Bad"));
    put(&mut pod, "spec.volumes.0.name", json!("other"));
    put(&mut pod, "spec.containers.0.image", json!(""));
    put(&mut pod, "spec.containers.1.envFrom", json!([{"secretRef": {"name": "s"}}]));
    let error = read_json(&pod).unwrap_err();
    let paths: Vec<String> = faults(&error).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "metadata.namespace",
            "spec.containers[0].image",
            "spec.containers[0].volumeMounts[0].name",
            "spec.containers[1].envFrom[0].secretRef",
        ]
    );
}

#[test]
fn an_error_reads_as_path_fault_value_reason_and_what_is_allowed() {
    let mut pod = rich();
    put(&mut pod, "spec.containers.0.ports.0.containerPort", json!(70000));
    put(&mut pod, "spec.containers.1.imagePullPolicy", json!("Often"));
    assert_eq!(
        read_json(&pod).unwrap_err().to_string(),
        "invalid pod: spec.containers[0].ports[0].containerPort: invalid value 70000: out of range (allowed: 1 to 65535); \
         spec.containers[1].imagePullPolicy: unsupported value \"Often\" (allowed: \"Always\", \"IfNotPresent\", \"Never\")"
    );
}
