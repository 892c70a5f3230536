//! Rows of what is read, and that what is written is read again.

use proptest::prelude::*;

use super::{blocks, certificates, clean_chain};

#[test]
fn blocks_are_found_between_all_kinds_of_text() {
    let one = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    let rows: [(&str, String, &[&str]); 9] = [
        ("nothing", String::new(), &[]),
        ("one", one.to_owned(), &["a"]),
        ("two with text around", format!("root:\n{one}# next\n{one}end"), &["a", "a"]),
        ("Windows' lines", one.replace('\n', "\r\n"), &["a"]),
        ("a header", one.replace("YQ", "Proc-Type: 4\nComment: x\n\nYQ"), &["a"]),
        ("any type", one.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), &["a"]),
        ("broken base64, then a good one", format!("{}{one}", one.replace("YQ==", "Y*==")), &["a"]),
        ("no end, then a good one", format!("-----BEGIN CERTIFICATE-----\nYg==\n{one}"), &["a"]),
        ("another end", one.replace("END CERTIFICATE", "END KEY"), &[]),
    ];
    for (what, text, wanted) in rows {
        let wanted: Vec<Vec<u8>> = wanted.iter().map(|b| b.as_bytes().to_vec()).collect();
        assert_eq!(blocks(&text), wanted, "{what}");
    }
}

#[test]
fn lines_are_as_long_as_everywhere() {
    let text = certificates([&vec![0; 50]]);
    let lines: Vec<usize> = text.lines().map(str::len).collect();
    assert_eq!(lines, [27, 64, 4, 25], "{text}");
    assert_eq!(certificates([&Vec::new()]), "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
}

#[test]
fn a_chain_keeps_its_order_and_what_is_in_it_twice() {
    let of = |all: &[&str]| certificates(&all.iter().map(|s| s.as_bytes().to_vec()).collect::<Vec<_>>());
    let chain = of(&["leaf", "between", "between"]);
    assert_eq!(clean_chain(&format!("leaf:\n{chain}rest")), chain);
    assert_eq!(clean_chain(""), "");
}

proptest! {
    #[test]
    fn what_is_written_is_read(all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4)) {
        prop_assert_eq!(blocks(&certificates(&all)), all);
    }

    #[test]
    fn any_text_can_be_read(text in "(?s)(-----BEGIN [A-B]{0,2}-----|-----END A-----|\n|.){0,30}") {
        let _any = blocks(&text);
    }
}
