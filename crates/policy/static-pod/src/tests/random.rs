//! Whatever the bytes, there is an answer and no panic.

use proptest::prelude::*;

use super::*;

fn yaml_of(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read_manifest(&bytes, &ORIGIN).is_err());
    }

    #[test]
    fn any_text_gets_an_answer_of_one_line(text in "(apiVersion: v1\nkind: Pod\n)?[-a-z:{}\\[\\]\",#&*!|>%@`'0-9. \n]{0,200}") {
        let error = read(&text).unwrap_err().to_string();
        prop_assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn a_damaged_manifest_gets_an_answer(at in any::<prop::sample::Index>(), len in 0usize..12, with in "[-a-z:{}\\[\\]\",# \n0-9]{0,6}") {
        let mut text = yaml_of(&rich()).into_bytes();
        let at = at.index(text.len());
        let end = (at + len).min(text.len());
        text.splice(at..end, with.bytes());
        if let Err(error) = read_manifest(&text, &ORIGIN) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn yaml_and_json_of_one_manifest_make_one_pod(grace in 0i64..1000, name in "[a-z]([a-z0-9]{0,8})", label in "[a-zA-Z0-9]{0,20}") {
        let mut pod = rich();
        put(&mut pod, "spec.terminationGracePeriodSeconds", json!(grace + 3));
        put(&mut pod, "metadata.name", json!(name));
        put(&mut pod, "metadata.labels.l", json!(label));
        prop_assert_eq!(read(&yaml_of(&pod)).unwrap().pod, read_json(&pod).unwrap().pod);
    }
}
