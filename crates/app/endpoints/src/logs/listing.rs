//! A folder as Go's file server lists it.

use std::io;
use std::path::Path;

use axum::response::{Html, IntoResponse, Response};

/// Bound on what is listed; far beyond any folder of logs.
const MOST: usize = 100_000;

pub(super) struct Entry {
    name: String,
    folder: bool,
}

/// Entries by name. A link counts as no folder, wherever it leads.
pub(super) fn read(dir: &Path) -> io::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(MOST) {
        let entry = entry?;
        let folder = entry.file_type().is_ok_and(|t| t.is_dir());
        all.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), folder });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

pub(super) fn page(entries: &[Entry]) -> Response {
    let mut page = String::from("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n");
    for Entry { name, folder } in entries {
        let slash = if *folder { "/" } else { "" };
        let (link, text) = (link(name), text(name));
        page.push_str(&format!("<a href=\"{link}{slash}\">{text}{slash}</a>\n"));
    }
    page.push_str("</pre>\n");
    Html(page).into_response()
}

/// A relative reference; a colon in it must not look like a scheme.
fn link(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    let mut out = String::new();
    if name.contains(':') {
        out.push_str("./");
    }
    for b in name.bytes() {
        match b {
            // What a path may hold and an attribute may not.
            b'&' => out.push_str("&amp;"),
            b if plain(b) => out.push(char::from(b)),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

fn text(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{link, text};

    #[test]
    fn names_cannot_break_out_of_the_page() {
        assert_eq!(link("a b\"><script>.log"), "a%20b%22%3E%3Cscript%3E.log");
        assert_eq!(text("<b>&'\""), "&lt;b&gt;&amp;&#39;&#34;");
        assert_eq!(link("javascript:x"), "./javascript:x");
        assert_eq!(link("\u{e4}"), "%C3%A4");
    }
}
