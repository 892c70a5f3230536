//! The dependency table of `ARCHITECTURE.md` says what the manifests say.

use super::map::{ARCHITECTURE, rows};
use super::used::{Used, Users};

const TABLE: &str = "## Dependencies";
/// Each dependency has its row, in order, with the crates that use it; each row is one.
pub(super) fn check(document: &str, used: &Used) -> Vec<String> {
    let mut found = Vec::new();
    let rows = rows(document, TABLE);
    let names: Vec<&str> = rows.iter().filter_map(|r| r.first().copied()).collect();
    found.extend(names.windows(2).filter(|w| w[0] >= w[1]).map(|w| {
        format!("{ARCHITECTURE}: dependency `{}` stands after `{}`: rows are in the order of names", w[1], w[0])
    }));
    for row in rows {
        let [name, buys, by] = row.as_slice() else { continue };
        let users = used.users.get(*name).map(Users::cell).unwrap_or_default();
        if buys.is_empty() {
            found.push(format!("{ARCHITECTURE}: dependency `{name}`: what does it buy?"));
        }
        if users != *by && used.declared.contains(*name) {
            found.push(format!("{ARCHITECTURE}: dependency `{name}`: used by is not `{by}` but: {users}"));
        }
        if !used.declared.contains(*name) {
            found.push(format!("{ARCHITECTURE}: `{name}` is no dependency: [workspace.dependencies] does not have it"));
        }
    }
    for name in &used.declared {
        if !used.users.contains_key(name) {
            found.push(format!("Cargo.toml: no crate uses `{name}`: remove it"));
        }
        if !names.contains(&name.as_str()) {
            let by = used.users.get(name).map(Users::cell).unwrap_or_default();
            found.push(format!("{ARCHITECTURE}: no row says what `{name}` buys; used by: {by}"));
        }
    }
    let strangers = used.users.keys().filter(|name| !used.declared.contains(*name));
    found.extend(strangers.map(|name| format!("Cargo.toml: `{name}` is used but not in [workspace.dependencies]")));
    found
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::tidy::used::declared;

    fn set(users: &[(&str, &str)]) -> BTreeSet<(String, String)> {
        users.iter().map(|(layer, name)| ((*layer).to_owned(), (*name).to_owned())).collect()
    }

    /// `bytes` in one crate and its tests, `tokio` in ten managers and an adapter, `prost` in a build script.
    fn used() -> Used {
        let managers: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
        let mut many = set(&[("adapters", "journal")]);
        many.extend(managers.iter().map(|m| ("managers".to_owned(), m.clone())));
        Used {
            declared: declared(
                "[workspace]\n[workspace.dependencies]\n# c = 1\nbytes = \"1\"\nprost = { a = 1 }\ntokio = \"1\"\n[x]\ny = 1\n",
            ),
            users: BTreeMap::from([
                (
                    "bytes".to_owned(),
                    Users { normal: set(&[("base", "ports")]), dev: set(&[("app", "server")]), ..Users::default() },
                ),
                ("prost".to_owned(), Users { build: set(&[("base", "cri-api")]), ..Users::default() }),
                ("tokio".to_owned(), Users { normal: many, ..Users::default() }),
            ]),
        }
    }

    const TRUE: &str = "## Dependencies\n\n| dependency | what it buys | used by |\n|---|---|---|\n\
        | bytes | bodies | `ports`; dev: `server` |\n| prost | CRI | build: `cri-api` |\n\
        | tokio | time | `journal`, managers |\n";

    #[test]
    fn a_true_table_is_fine_and_a_false_row_is_not() {
        assert_eq!(check(TRUE, &used()), Vec::<String>::new());
        let rows = [
            ("`ports`; dev: `server`", "`ports`, `server`", "but: `ports`; dev: `server`"),
            ("`journal`, managers", "managers", "but: `journal`, managers"),
            ("`journal`, managers", "adapters, managers", "but: `journal`, managers"),
            ("build: `cri-api`", "`cri-api`", "but: build: `cri-api`"),
            ("| bytes | bodies |", "| bytes | |", "what does it buy"),
            ("| bytes |", "| bites |", "`bites` is no dependency"),
            ("| bytes |", "| bites |", "no row says what `bytes` buys"),
            ("| bytes |", "| zbytes |", "in the order of names"),
        ];
        for (from, to, want) in rows {
            let found = check(&TRUE.replace(from, to), &used());
            assert!(found.iter().any(|f| f.contains(want)), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_dependency_of_nobody_is_refused_and_one_outside_of_the_list() {
        let mut nobody = used();
        nobody.users.remove("bytes");
        assert!(check(TRUE, &nobody).iter().any(|f| f == "Cargo.toml: no crate uses `bytes`: remove it"));
        let mut stranger = used();
        stranger.users.insert("nix".to_owned(), Users::default());
        assert!(check(TRUE, &stranger).iter().any(|f| f.contains("`nix` is used but not in")));
    }
}
