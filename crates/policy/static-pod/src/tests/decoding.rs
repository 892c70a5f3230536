use super::*;
use crate::MAX_MANIFEST_BYTES;

const GOOD: &str =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: x:1}\n";

#[test]
fn says_what_is_wrong_with_bytes_that_are_no_manifest() {
    let rows: &[(&str, &[u8], &str)] = &[
        ("nothing", b"", "manifest is empty"),
        ("white space", b" \n\n", "manifest is empty"),
        ("comments", b"# one\n---\n# two\n", "manifest is empty"),
        ("binary", b"apiVersion: v1\n\xff\xfe", "manifest is not UTF-8: byte 15 is not part of a character"),
        ("bad indentation", b"a: 1\n b: 2\n", "not YAML or JSON: line 2"),
        ("unclosed list", b"a: [1, 2\n", "not YAML or JSON: line"),
        ("tab", b"a:\n\tb: 1\n", "not YAML or JSON: line"),
        ("scalar", b"hello", "manifest: wrong type \"hello\""),
        ("list", b"- a\n- b\n", "manifest: wrong type [\"a\",\"b\"]"),
        ("no kind", b"apiVersion: v1\n", "kind: required value is missing (allowed: Pod)"),
        ("no version", b"kind: Pod\n", "apiVersion: required value is missing (allowed: v1)"),
        ("other kind", b"apiVersion: v1\nkind: Service\n", "kind: unsupported value \"Service\""),
        ("other group", b"apiVersion: apps/v1\nkind: Pod\n", "apiVersion: unsupported value \"apps/v1\""),
        ("numeric version", b"apiVersion: 1\nkind: Pod\n", "apiVersion: wrong type 1: must be a string"),
        ("List", b"apiVersion: v1\nkind: List\nitems: []\n", "a file holds one pod"),
        ("PodList", b"apiVersion: v1\nkind: PodList\nitems: []\n", "a file holds one pod"),
    ];
    for (name, bytes, expected) in rows {
        let error = read_manifest(bytes, &ORIGIN).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn refuses_more_than_ten_mebibytes_unread() {
    let bytes = vec![b' '; MAX_MANIFEST_BYTES + 1];
    let error = read_manifest(&bytes, &ORIGIN).unwrap_err();
    assert_eq!(error, ManifestError::TooLarge { size: MAX_MANIFEST_BYTES + 1 });
}

#[test]
fn reports_every_field_of_a_wrong_type_with_path_value_and_what_is_allowed() {
    let error = read(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {a: 1}}\nspec:\n  hostNetwork: 'yes'\n  containers:\n  - name: c\n    image: [x]\n    ports: [{containerPort: http}, {containerPort: 99999999999}]\n  - text\n",
    )
    .unwrap_err();
    assert_eq!(
        faults(&error),
        [
            ("metadata.labels.a".to_owned(), Fault::Type),
            ("spec.containers[0].image".to_owned(), Fault::Type),
            ("spec.containers[0].ports[0].containerPort".to_owned(), Fault::Type),
            ("spec.containers[0].ports[1].containerPort".to_owned(), Fault::Invalid),
            ("spec.containers[1]".to_owned(), Fault::Type),
            ("spec.hostNetwork".to_owned(), Fault::Type),
        ]
    );
    let text = error.to_string();
    assert!(text.starts_with("couldn't parse as pod: "), "{text}");
    assert!(text.contains("containerPort: wrong type \"http\""), "{text}");
    assert!(text.contains("allowed: a whole number from -2147483648 to 2147483647"), "{text}");
    assert!(text.contains("spec.hostNetwork: wrong type \"yes\""), "{text}");
}

#[test]
fn takes_the_first_document_only() {
    let two = format!("---\n{GOOD}---\nnot: [a, pod\n");
    assert_eq!(read(&two).unwrap().pod, read(GOOD).unwrap().pod);
}

#[test]
fn takes_json_with_tabs_and_a_byte_order_mark() {
    let json = "\u{feff}{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"web\"},\n\t\"spec\": {\"containers\": [{\"name\": \"c\", \"image\": \"x:1\"}]}}";
    assert_eq!(read(json).unwrap().pod, read(GOOD).unwrap().pod);
}

#[test]
fn reads_yaml_as_kubernetes_tools_do() {
    let manifest = read(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  hostNetwork: yes\n  hostPID: on\n  containers:\n  - &c {name: c, image: x:1, resources: {limits: {cpu: 1, memory: 1.5Gi}}}\n  - <<: *c\n    name: d\n  volumes:\n  - name: v\n    downwardAPI: {defaultMode: 0400, items: []}\n",
    )
    .unwrap();
    let spec = manifest.pod.spec.unwrap();
    assert_eq!(spec.volumes.unwrap()[0].downward_api.as_ref().unwrap().default_mode, Some(0o400));
    assert_eq!((spec.host_network, spec.host_pid), (Some(true), Some(true)));
    assert_eq!(spec.containers[1].image.as_deref(), Some("x:1"));
    let limits = spec.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert_eq!((limits["cpu"].0.as_str(), limits["memory"].0.as_str()), ("1", "1536Mi"));
}

#[test]
fn a_bomb_of_aliases_is_refused_quickly() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{aliases}]\n"));
    }
    assert!(matches!(read(&text).unwrap_err(), ManifestError::Syntax { .. }));
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "- ".repeat(100_000)] {
        assert!(read(&text).is_err());
    }
}

#[test]
fn an_unknown_field_is_ignored_with_a_warning() {
    let manifest =
        read(&GOOD.replace("{name: c, image: x:1}", "{name: c, image: x:1, imagePulPolicy: Never, tty: null}"))
            .unwrap();
    assert_eq!(manifest.warnings.len(), 1);
    assert_eq!(manifest.warnings[0].to_string(), "spec.containers[0].imagePulPolicy: unknown field, ignored");
}

#[test]
fn of_a_duplicate_key_the_last_counts_with_a_warning() {
    let manifest =
        read(&GOOD.replace("metadata: {name: web}", "metadata: {name: old}\nmetadata: {name: web}")).unwrap();
    assert_eq!(manifest.pod, read(GOOD).unwrap().pod);
    assert_eq!(manifest.warnings.len(), 1);
    assert_eq!(
        manifest.warnings[0].to_string(),
        "line 4, column 1: metadata is given twice in one mapping, the last one counts"
    );
}
