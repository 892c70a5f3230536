//! Names that may have been meant.

/// How many are named.
const MOST: usize = 3;

/// The names that are nearest to what was written, best first: those that hold it, else those that differ in few letters.
#[must_use]
pub fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(256).collect();
    let most = (wanted.len() / 3).clamp(1, 4);
    let text: String = wanted.iter().collect();
    let distance = |name: &str| {
        let lower = name.to_lowercase();
        if !text.is_empty() && (lower.contains(&text) || text.contains(&lower)) {
            return Some(0);
        }
        Some(edits(&wanted, &lower)).filter(|d| *d <= most)
    };
    let mut found: Vec<(usize, &str)> = names.filter_map(|name| Some((distance(name)?, name))).collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Letters to put in, take out or change.
fn edits(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, c) in b.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, w) in a.iter().enumerate() {
            let change = diagonal + usize::from(c != *w);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn what_was_nearly_written_is_named() {
        let names = ["web-0", "web-1", "database", "cache-7f9c", "billing"];
        let table: &[(&str, &[&str])] = &[
            ("web", &["web-0", "web-1"]),
            ("databse", &["database"]),
            ("CACHE", &["cache-7f9c"]),
            ("biling", &["billing"]),
            ("kubernetes-dashboard", &[]),
            ("", &[]),
        ];
        for (wanted, expected) in table {
            assert_eq!(near(wanted, names.iter().copied()), *expected, "{wanted}");
        }
    }
}
