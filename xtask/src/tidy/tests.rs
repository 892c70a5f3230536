use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.files.insert((*path).to_owned(), (*text).to_owned());
        tree.paths.insert((*path).to_owned());
    }
    tree
}

#[test]
fn the_workspace_is_tidy() {
    let tree = Tree::read(&workspace::root()).expect("git lists the files");
    let found = check(&tree);
    assert!(found.is_empty(), "{} untidy places:\n{}", found.len(), found.join("\n"));
}

fn body(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
}

#[test]
fn a_function_may_have_seventy_lines() {
    assert!(sizes::check(&tree(&[("crates/app/a/src/x.rs", &body(70))])).is_empty());
    let found = sizes::check(&tree(&[("crates/app/a/src/x.rs", &body(71))]));
    assert!(found.len() == 1 && found[0].contains("x.rs::long: 71 lines"), "{found:?}");
}

#[test]
fn a_declaration_has_no_length() {
    let text =
        format!("trait T {{\n    fn declared(\n        a: A,\n    ) -> R;\n{}}}\n", "    fn next();\n".repeat(80));
    assert_eq!(sizes::check(&tree(&[("crates/app/a/src/x.rs", &text)])), Vec::<String>::new());
}

#[test]
fn a_module_for_tests_only_is_a_test() {
    let tree = tree(&[
        ("crates/policy/a/src/lib.rs", "//! A.\n//! B.\n#[cfg(test)]\nmod golden;\n"),
        ("crates/policy/a/src/golden/read.rs", "std::fs::read(p);\n"),
        ("crates/policy/a/src/golden.rs", &body(90)),
    ]);
    assert!(tree.rust().filter(|s| s.path.contains("golden")).all(|s| s.product.is_empty()));
}

#[test]
fn a_file_is_measured_without_its_tests() {
    let product = "fn a() {}\n".repeat(600);
    let tests = format!("{product}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    // case\n".repeat(300));
    assert!(sizes::check(&tree(&[("crates/app/a/src/x.rs", &tests)])).is_empty());
    let found = sizes::check(&tree(&[("crates/app/a/src/x.rs", &format!("{product}fn b() {{}}\n"))]));
    assert!(found.len() == 1 && found[0].contains("601 lines"), "{found:?}");
    assert!(sizes::check(&tree(&[("crates/app/a/src/x/tests.rs", &product.repeat(2))])).is_empty());
}

#[test]
fn the_ratchet_only_shrinks() {
    let key = "crates/app/a/src/x.rs::long";
    let rows = [
        (80, format!("\"{key}\" = 80 # a table\n"), None),
        (81, format!("\"{key}\" = 80 # a table\n"), Some("grew to 81")),
        (79, format!("\"{key}\" = 80 # a table\n"), Some("lower it")),
        (60, format!("\"{key}\" = 80 # a table\n"), Some("remove the line")),
        (80, format!("\"{key}\" = 80\n"), Some("reason")),
    ];
    for (lines, ratchet, want) in rows {
        let found = sizes::check(&tree(&[("crates/app/a/src/x.rs", &body(lines)), (tree::RATCHET, &ratchet)]));
        match want {
            None => assert!(found.is_empty(), "{lines}: {found:?}"),
            Some(want) => assert!(found.iter().any(|f| f.contains(want)), "{lines} {ratchet}: {found:?}"),
        }
    }
}

#[test]
fn banned_words_are_found_where_they_are_banned() {
    let rows = [
        ("crates/managers/a/src/x.rs", "let t = Instant::now();", true),
        ("crates/managers/a/src/x.rs", "// Instant::now() would be wrong here", false),
        ("crates/managers/a/src/x/tests.rs", "let t = Instant::now();", false),
        ("crates/adapters/a/src/x.rs", "let t = Instant::now();", false),
        ("crates/base/actor/src/x.rs", "tokio::spawn(f);", false),
        ("crates/base/contract/src/x.rs", "tokio::spawn(f);", true),
        ("crates/policy/a/src/x.rs", "std::fs::read(p)", true),
        ("crates/policy/a/src/x.rs", "f().await", true),
        ("crates/managers/a/src/x/tests.rs", "std::thread::sleep(d);", true),
        ("crates/managers/a/src/x/tests.rs", "#[ignore]", true),
        ("crates/managers/a/src/x.rs", "// TODO: later", true),
        ("crates/managers/a/src/x.rs", "// TODO(issue 4): later", false),
    ];
    for (path, text, banned) in rows {
        let found = words::check(&Source::new(path, text));
        assert_eq!(!found.is_empty(), banned, "{path}: {text}: {found:?}");
    }
}

#[test]
fn each_stop_of_a_pods_life_has_one_home_that_the_guide_names() {
    let stops = ["1a", "1b", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];
    let code: String =
        stops.iter().map(|s| format!("/// LIFE-OF-A-POD {s}/12: so\nasync fn stop_{s}(a: A) {{}}\n")).collect();
    let row = |s: &&str| format!("| `LIFE-OF-A-POD {s}/12` | `crates/managers/a/src/x.rs` `stop_{s}` | text |\n");
    let rows: String = stops.iter().map(row).collect();
    let guide = format!("# Life of a pod\n\n| stop | where | what |\n|---|---|---|\n{rows}");
    let found = |code: &str, guide: &str| {
        docs::life_of_a_pod(&tree(&[("crates/managers/a/src/x.rs", code), ("docs/life-of-a-pod.md", guide)]))
    };
    assert_eq!(found(&code, &guide), Vec::<String>::new());
    assert!(found(&code.replace("POD 3/12", ""), &guide)[0].contains("3/12` stands nowhere"));
    assert!(found(&code.replace("POD 1b/12", ""), &guide)[0].contains("1b/12` stands nowhere"));
    assert!(found(&format!("{code}// LIFE-OF-A-POD 1a/12\n"), &guide)[0].contains("1a/12` stands 2 times"));
    assert!(found(&code, &guide.replace("POD 7/12", ""))[0].contains("does not tell of"));
    assert!(found(&code, &guide.replace("`stop_8`", "`stop_9`"))[0].contains("`stop_8`, not at"));
    assert!(found(&code, &guide.replace("src/x.rs` `stop_8`", "src/y.rs` `stop_8`"))[0].contains("`stop_8`, not at"));
}

#[test]
fn documents_name_only_paths_that_exist() {
    let with = |text: &str| docs::paths(&tree(&[("README.md", text), ("docs/testing.md", "")]));
    assert_eq!(with("see `docs/testing.md` and [tests](docs/testing.md#beds), `cargo test`"), Vec::<String>::new());
    assert_eq!(with("every `crates/*/src/lib.rs`"), Vec::<String>::new());
    assert_eq!(with("one\nsee `docs/nope.md`"), ["README.md:2: `docs/nope.md` does not exist"]);
}

#[test]
fn documents_name_only_what_is_in_the_code() {
    let code = ("crates/base/a/src/x.rs", "pub struct FirstOne;\nfn second_one() {}\n");
    let with = |path: &str, text: &str| docs::names(&tree(&[code, (path, text)]));
    let known = "`FirstOne`, `x::second_one(3)`, `--a-flag`, `a word`, `Word`, `/path/of`, `key: value`";
    assert_eq!(with("README.md", &known.replace("x::", "")), Vec::<String>::new());
    assert_eq!(with("docs/a.md", "of\n`ThirdOne`"), ["docs/a.md:2: `ThirdOne` is no name in the code"]);
    assert_eq!(with("docs/a.md", "`second_one` and `gone()`").len(), 1);
    assert_eq!(with("docs/decisions/1.md", "`ThirdOne`"), Vec::<String>::new());
}

#[test]
fn charters_and_names_are_asked_for() {
    let lib = |text: &str| form(&Source::new("crates/base/a/src/lib.rs", text));
    assert!(lib("//! Owns this.\n//! Never does that.\n").is_empty());
    assert_eq!(lib("//! One line.\n").len(), 1);
    assert_eq!(form(&Source::new("crates/base/a/src/util.rs", "")).len(), 1);
    assert_eq!(form(&Source::new("crates/base/a/src/x/mod.rs", "")).len(), 1);
}
