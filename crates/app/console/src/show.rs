//! Tables, JSON and YAML for people and scripts.

use anyhow::Result;
use comfy_table::{Table, presets};
use serde::Serialize;

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// A table with more columns.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Prints a value as JSON or YAML; answers `false` when a table is wanted.
///
/// # Errors
/// The value has no such form.
pub fn structured(output: Option<Output>, value: &impl Serialize) -> Result<bool> {
    match output {
        Some(Output::Json) => print(&serde_json::to_string_pretty(value)?),
        Some(Output::Yaml) => print(&serde_saphyr::to_string(value)?),
        None | Some(Output::Wide) => return Ok(false),
    }
    Ok(true)
}

/// Prints an aligned table without lines.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) {
    for line in lines(header, rows) {
        print(&line);
    }
}

/// The lines of an aligned table.
pub(crate) fn lines(header: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Prints a line; a closed pipe ends the program quietly.
pub fn print(text: &str) {
    use std::io::Write;
    if writeln!(std::io::stdout().lock(), "{}", text.trim_end_matches('\n')).is_err() {
        std::process::exit(0);
    }
}

/// Text that others shaped, for a terminal: one line, and nothing in it that a terminal obeys.
pub(crate) fn plain(text: &str) -> String {
    let fit =
        |c: char| !c.is_control() && !('\u{202a}'..='\u{202e}').contains(&c) && !('\u{2066}'..='\u{2069}').contains(&c);
    text.chars().map(|c| if fit(c) { c } else { ' ' }).collect::<String>().trim_end().to_owned()
}

/// Three digits say enough to a reader; `-o json` has the number.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let units = ["Ki", "Mi", "Gi", "Ti"];
    let Some(unit) = (0..units.len()).rev().find(|n| bytes >= 1 << (10 * (n + 1))) else {
        return bytes.to_string();
    };
    let tenths = (u128::from(bytes) * 10) >> (10 * (unit + 1));
    let whole = tenths / 10;
    if whole >= 100 { format!("{whole}{}", units[unit]) } else { format!("{whole}.{}{}", tenths % 10, units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::{bytes, plain};

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\r\u{202e}d\u{9b}31m\n"), "a [2Jb c  d 31m");
    }

    #[test]
    fn bytes_are_short() {
        let table = [
            (0, "0"),
            (1000, "1000"),
            (1023, "1023"),
            (1536, "1.5Ki"),
            (100 << 20, "100Mi"),
            ((8 << 30) - 1, "7.9Gi"),
            (u64::MAX, "16777215Ti"),
        ];
        for (n, wanted) in table {
            assert_eq!(bytes(n), wanted, "{n}");
        }
    }
}
