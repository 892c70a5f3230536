use proptest::prelude::*;

use super::*;

fn expanded(text: &str) -> String {
    let lookup = |name: &str| match name {
        "A" => Some(b"one".to_vec()),
        "EMPTY" => Some(Vec::new()),
        "REF" => Some(b"$(A)".to_vec()),
        "" => Some(b"nameless".to_vec()),
        "B(" => Some(b"odd".to_vec()),
        _ => None,
    };
    String::from_utf8(expand(text, lookup)).expect("text")
}

#[test]
fn references_follow_the_grammar() {
    let rows = [
        ("known", "x$(A)y", "xoney"),
        ("unknown stays", "$(NOPE)", "$(NOPE)"),
        ("escaped", "$$(A)", "$(A)"),
        ("escaped escape", "$$$(A)", "$one"),
        ("two escapes", "$$$$(A)", "$$(A)"),
        ("no parenthesis", "$A ${A}", "$A ${A}"),
        ("never closed", "$(A", "$(A"),
        ("never closed, then one", "$(A $(A)", "$(A $(A)"),
        ("dollar at the end", "a$", "a$"),
        ("two at the end", "a$$", "a$"),
        ("empty value", "[$(EMPTY)]", "[]"),
        ("no recursion", "$(REF)", "$(A)"),
        ("empty name", "$()", "nameless"),
        ("parenthesis in a name", "$(B()", "odd"),
        ("several", "$(A)-$(NOPE)-$$(A)", "one-$(NOPE)-$(A)"),
        ("other letters", "$\u{e9}$(A)", "$\u{e9}one"),
        ("nothing", "", ""),
    ];
    for (row, text, want) in rows {
        assert_eq!(expanded(text), want, "{row}");
    }
}

#[test]
fn words_see_the_whole_environment() {
    let mut env = Environment::default();
    env.set("A", "1");
    env.set("BYTES", vec![0xff]);
    let words = ["$(A)", "$(B)", "$$(A)", "$(BYTES)"].map(str::to_owned);
    assert_eq!(expand_strings(&words, &env), ["1", "$(B)", "$(A)", "\u{fffd}"]);
}

proptest! {
    #[test]
    fn text_without_dollars_is_unchanged(text in "[^$]*") {
        prop_assert_eq!(expanded(&text), text);
    }

    #[test]
    fn any_text_is_expanded_and_doubling_the_dollars_undoes_it(text in any::<String>()) {
        let _ = expanded(&text);
        prop_assert_eq!(expanded(&text.replace('$', "$$")), text);
    }

    #[test]
    fn with_nothing_known_only_escapes_change(text in "[$()a-c]{0,12}") {
        let got = String::from_utf8(expand(&text, |_| None)).expect("text");
        prop_assert!(got.len() <= text.len());
        if !text.contains("$$") {
            prop_assert_eq!(got, text);
        }
    }
}
