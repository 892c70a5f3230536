//! Variables in files that containers wrote (`fileKeyRef`): `NAME='value'` and nothing of a shell beside that.

/// The value of `key`; `None`: the file does not set it, or sets it to nothing. What follows the key is not looked at.
///
/// # Errors
/// Which line breaks the rules: names without white space, values in single quotes (which may span lines), only a comment
/// after the closing quote.
pub(super) fn variable(text: &str, key: &str) -> Result<Option<String>, String> {
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let wrong = |what: &str| Err(format!("line {}: {what}", at + 1));
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, rest)) = line.split_once('=') else { return wrong("no '='") };
        if name.is_empty() || name.ends_with([' ', '\t']) {
            return wrong("no name right before '='");
        }
        if rest.starts_with([' ', '\t']) {
            // As a shell reads it: an empty value, and a word after it.
            if name == key {
                return Ok(None);
            }
            continue;
        }
        let Some(mut rest) = rest.strip_prefix('\'') else { return wrong("the value is not in single quotes") };
        let mut value = String::new();
        let after = loop {
            if let Some((end, after)) = rest.split_once('\'') {
                value.push_str(end);
                break after.trim_start_matches([' ', '\t']);
            }
            value.push_str(rest);
            value.push('\n');
            match lines.next() {
                Some((_, next)) => rest = next,
                None => return wrong("the quote is not closed"),
            }
        };
        if !after.is_empty() && !after.starts_with('#') {
            return wrong("something follows the closing quote");
        }
        if name == key {
            return Ok(Some(value).filter(|v| !v.is_empty()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn only_the_strict_form_is_read() {
        let rows: &[(&str, Result<Option<&str>, &str>)] = &[
            ("K='v'", Ok(Some("v"))),
            ("# a comment\n\n \tK='v' # why", Ok(Some("v"))),
            ("A='1'\r\nK='v'\r\n", Ok(Some("v"))),
            ("K='$A \\n \"x\"'", Ok(Some("$A \\n \"x\""))),
            ("K='one\ntwo\n'\n", Ok(Some("one\ntwo\n"))),
            ("K='first'\nK='second'", Ok(Some("first"))),
            ("K='v'\nthis is not looked at", Ok(Some("v"))),
            ("A='x'", Ok(None)),
            ("K=''", Ok(None)),
            ("K= 'v'", Ok(None)),
            ("A= 'x'\nK='v'", Ok(Some("v"))),
            ("", Ok(None)),
            ("words", Err("line 1: no '='")),
            ("A='1'\nK ='v'", Err("line 2: no name right before '='")),
            ("='v'", Err("line 1: no name right before '='")),
            ("K=v", Err("line 1: the value is not in single quotes")),
            ("K=\"v\"", Err("line 1: the value is not in single quotes")),
            ("A='1\n2\n", Err("line 1: the quote is not closed")),
            ("K='v'x", Err("line 1: something follows the closing quote")),
        ];
        for (text, want) in rows {
            let want = want.map(|v| v.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(variable(text, "K"), want, "{text:?}");
        }
    }
}
