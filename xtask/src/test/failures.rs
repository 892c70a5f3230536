//! What failed, and why, out of the output of a step: what is read first must not be looked for.

/// Lines of the end of a failed test's output that are shown.
const LINES: usize = 30;
/// Lines of the end of a step's output that are shown when no test in it failed.
const END: usize = 40;
/// Failed tests that are shown.
const TESTS: usize = 20;

/// The failed tests with the end of what each said, or the end of the step's output.
pub(super) fn what_failed(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let mut shown = String::new();
    for (n, (name, said)) in failed_tests(&lines).into_iter().enumerate() {
        if n == TESTS {
            shown.push_str("... and more\n");
            break;
        }
        shown.push_str(&format!("{name}\n"));
        let said = without_backtraces(said);
        for line in &said[said.len().saturating_sub(LINES)..] {
            shown.push_str(&format!("    {line}\n"));
        }
    }
    if shown.is_empty() {
        let end = &lines[lines.len().saturating_sub(END)..];
        return end.join("\n");
    }
    shown
}

/// As nextest prints them when they fail: a line with state and name, then the output under headings of their own.
fn failed_tests<'a>(lines: &'a [&'a str]) -> Vec<(&'a str, &'a [&'a str])> {
    let heading = |line: &str| ["stdout ───", "stderr ───", "output ───"].contains(&line.trim());
    let begins = |at: &usize| lines[*at].contains('[') && lines.get(at + 1).is_some_and(|next| heading(next));
    let starts: Vec<usize> = (0..lines.len()).filter(begins).collect();
    let ends = |line: &str| line.starts_with("────") || states(line);
    let found = starts.iter().map(|&at| {
        let rest = &lines[at + 1..];
        let len = rest.iter().position(|line| ends(line)).unwrap_or(rest.len());
        (lines[at].trim(), &rest[..len])
    });
    found.collect()
}

/// `        PASS [   0.027s] (3/133) crate name`
fn states(line: &str) -> bool {
    let words = line.strip_prefix("    ").map(|rest| rest.trim_start().split(' ').next().unwrap_or_default());
    words.is_some_and(|w| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase() || c == '-')) && line.contains("s] (")
}

/// They are long, and the panic's own words stand before them.
fn without_backtraces<'a>(said: &[&'a str]) -> Vec<&'a str> {
    let mut inside = false;
    let keeps = |line: &&&str| {
        let line = line.trim();
        inside = (inside || line == "stack backtrace:") && !line.is_empty() && !line.starts_with("note: ");
        !inside && !line.is_empty() && !line.starts_with("note: ")
    };
    said.iter().filter(keeps).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        PASS [   0.027s] (1/3) bosun cli::fine
        FAIL [   3.210s] (2/3) xtask::bin/xtask tidy::tests::the_workspace_is_tidy
  stdout ───

    running 1 test
    test tidy::tests::the_workspace_is_tidy ... FAILED

  stderr ───

    thread 'tidy' panicked at xtask/src/tidy/tests.rs:16:5:
    1 untidy places:
    run.rs::serve: 71 lines, limit 70
    stack backtrace:
       0: __rustc::rust_begin_unwind
                 at /rustc/lib.rs:689:5
    note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.

        PASS [   0.010s] (3/3) bosun cli::later
────────────
     Summary [  40.621s] 3 tests run: 2 passed, 1 failed, 0 skipped
        FAIL [   3.210s] (2/3) xtask::bin/xtask tidy::tests::the_workspace_is_tidy
error: test run failed
";

    #[test]
    fn a_failed_test_is_shown_with_its_reason_and_without_its_backtrace() {
        let shown = what_failed(LOG);
        assert!(shown.starts_with("FAIL [   3.210s] (2/3) xtask::bin/xtask tidy::tests::the_workspace_is_tidy\n"));
        assert!(shown.ends_with("        1 untidy places:\n        run.rs::serve: 71 lines, limit 70\n"), "{shown}");
        assert!(!shown.contains("cli::later") && !shown.contains("rust_begin_unwind"), "{shown}");
    }

    #[test]
    fn of_many_lines_the_end_is_shown() {
        let many: String = (0..100).map(|n| format!("    line {n}\n")).collect();
        let log = format!("        FAIL [   1.000s] (1/1) a b\n  stderr ───\n{many}");
        let shown = what_failed(&log);
        assert_eq!(shown.lines().count(), 1 + LINES);
        assert!(shown.ends_with("line 99\n"));
        // No test: a compiler's error, say.
        let shown = what_failed(&many);
        assert_eq!(shown.lines().count(), END);
        assert!(shown.ends_with("line 99"));
    }
}
