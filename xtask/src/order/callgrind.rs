//! What callgrind writes: the instructions that each function executed.

use std::collections::BTreeMap;

/// Adds the instructions of each function's own that a file tells, by the function's symbol.
pub(super) fn add(text: &str, cost: &mut BTreeMap<String, u64>) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut current, mut of_callee) = ("", false);
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("fn=") {
            current = name(of, &mut names);
        } else if let Some(of) = line.strip_prefix("cfn=") {
            name(of, &mut names);
        } else if line.starts_with("calls=") {
            of_callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            // The line after `calls=` tells what the callee cost.
            let own = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
            if let (false, Some(own)) = (std::mem::take(&mut of_callee), own) {
                *cost.entry(current.to_owned()).or_default() += own;
            }
        }
    }
}

/// A name is told once, as `(7) name`, and then by its number. `'2` behind it is a recursion.
fn name<'a>(of: &'a str, names: &mut BTreeMap<&'a str, &'a str>) -> &'a str {
    let (number, told) = of.split_once(' ').unwrap_or((of, ""));
    if !told.is_empty() {
        names.insert(number, told.split('\'').next().unwrap_or(told));
    }
    names.get(number).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::add;

    #[test]
    fn a_function_costs_its_own_lines_under_its_number_and_its_name_and_not_those_of_what_it_calls() {
        let file = "version: 1\nfn=(1) _ZN4mainE\n10 5\n+3 7\ncfn=(2) _ZN3subE'2\ncalls=1 20\n14 900\n\n\
                    fn=(2)\n20 400\n* 500\nfn=(1)\n11 1\ntotals: 913\n";
        let mut cost = BTreeMap::new();
        add(file, &mut cost);
        assert_eq!(cost, BTreeMap::from([("_ZN4mainE".to_owned(), 13), ("_ZN3subE".to_owned(), 900)]));
    }
}
