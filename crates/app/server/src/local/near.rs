//! Names that may have been meant.

/// How many are named.
const MOST: usize = 3;

/// The names that are nearest to what was written, best first: those that hold it, else those that differ in few letters.
pub(super) fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let text: String = wanted.to_lowercase().chars().take(256).collect();
    let most = (text.chars().count() / 3).clamp(1, 4);
    let distance = |name: &str| {
        let lower = name.to_lowercase();
        if !text.is_empty() && (lower.contains(&text) || text.contains(&lower)) {
            return Some(0);
        }
        Some(strsim::levenshtein(&text, &lower)).filter(|d| *d <= most)
    };
    let mut found: Vec<(usize, &str)> = names.filter_map(|name| Some((distance(name)?, name))).collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
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
