//! Feature gates: what `bosun check-config` says of a gate must be so. A gate that the code asks for and does not list is told as
//! without effect; one that it lists and nobody asks for is not told at all.

use std::collections::BTreeSet;

use super::tree::Source;

/// Where gates and the list of those with an effect are.
const GATES: &str = "crates/app/node-config/src/feature_gates.rs";
/// Questions about gates that are chosen elsewhere: beginnings of paths, with what stands in the brackets.
const OF_OTHERS: &[(&str, &str)] = &[
    // All gates, for a metric.
    ("crates/app/bosun/src/run/http.rs", "gate.name"),
    // Gates that are built, which others ask for.
    ("crates/app/bosun/src/node/managers/cluster.rs", "gate"),
];

pub(super) fn check(sources: &[Source<'_>]) -> Vec<String> {
    let Some(gates) = sources.iter().find(|s| s.path == GATES) else { return Vec::new() };
    let honoured = literals(list(gates.text, "HONOURED"));
    let mut asked = literals(list(gates.text, "NEEDS"));
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path != GATES && s.layer() == "app") {
        for argument in arguments(source.product) {
            match name(argument, source.product) {
                Some(gate) => {
                    if !honoured.contains(gate) {
                        found.push(format!(
                            "{}: asks for the gate {gate}, which HONOURED in {GATES} lacks",
                            source.path
                        ));
                    }
                    asked.insert(gate);
                }
                None if OF_OTHERS.contains(&(source.path, argument)) => {}
                None => found.push(format!(
                    "{}: which gate is `enabled({argument})`? Write its name, or a constant of this file",
                    source.path
                )),
            }
        }
    }
    let idle = honoured.difference(&asked);
    found.extend(idle.map(|gate| format!("{GATES}: HONOURED lists {gate}, which nobody asks for")));
    found
}

/// The text of an array.
fn list<'a>(text: &'a str, array: &str) -> &'a str {
    let after = text.split_once(&format!("const {array}: ")).map_or("", |(_, rest)| rest);
    after.split_once("];").map_or("", |(inside, _)| inside)
}

fn literals(text: &str) -> BTreeSet<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// What stands in the brackets of every question for a gate.
fn arguments(text: &str) -> impl Iterator<Item = &str> {
    text.split(".enabled(").skip(1).filter_map(|rest| rest.split_once(')')).map(|(inside, _)| inside.trim())
}

/// The gate that an argument names: a literal, or a text of this file that is called so.
fn name<'a>(argument: &'a str, text: &'a str) -> Option<&'a str> {
    let literal = |text: &'a str| text.trim_start().strip_prefix('"')?.split_once('"').map(|(gate, _)| gate);
    literal(argument).or_else(|| {
        let named = [format!("const {argument}: &str ="), format!("let {argument} =")];
        named.iter().find_map(|begin| literal(text.split_once(begin.as_str())?.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(honoured: &str, asks: &str) -> Vec<String> {
        let gates =
            format!("const HONOURED: &[&str] = &[{honoured}];\nconst NEEDS: &[(&str, &str)] = &[(\"A\", \"B\")];");
        check(&[Source::new(GATES, &gates), Source::new("crates/app/bosun/src/node.rs", asks)])
    }

    #[test]
    fn gates_that_are_asked_for_and_gates_that_are_listed_are_the_same() {
        let listed = "\"A\", \"B\", \"C\", \"D\"";
        let asks = "gates.enabled(\"C\"); const GATE: &str = \"D\"; gates\n.enabled(GATE)";
        assert_eq!(found(listed, asks), Vec::<String>::new());
        let missing = found("\"A\", \"B\", \"C\"", asks);
        assert!(missing.len() == 1 && missing[0].contains("asks for the gate D"), "{missing:?}");
        let idle = found(listed, "gates.enabled(\"C\")\n#[cfg(test)]\nmod tests {\n gates.enabled(\"D\") }");
        assert!(idle.len() == 1 && idle[0].contains("lists D"), "{idle:?}");
        let unknown = found(listed, &format!("{asks}; gates.enabled(gate)"));
        assert!(unknown.len() == 1 && unknown[0].contains("which gate is `enabled(gate)`"), "{unknown:?}");
    }
}
