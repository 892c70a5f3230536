//! Tests on the real clock do not sleep: a machine that is slower than the sleep fails them, or lets them pass.

use super::tree::Source;

const REASON: &str =
    "a test on the real clock waits for an event, or for a condition (`actor::testing::spin_until`, `poll_until`)";

/// The clock of a function of tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Real,
    Paused,
    /// A helper: that of whoever calls it.
    Callers,
}

struct Function {
    /// From 0, of its first and its last line.
    lines: (usize, usize),
    clock: Clock,
}

/// Threads that sleep, and sleeps in tests on the real clock, and in helpers beside such tests where no test has a paused clock.
pub(super) fn check(source: &Source<'_>) -> Vec<String> {
    if ["xtask", "testing"].contains(&source.layer()) {
        return Vec::new();
    }
    let first = source.product.lines().count();
    let lines: Vec<&str> = source.text[source.product.len()..].lines().collect();
    let functions = functions(&lines);
    let has = |clock| functions.iter().any(|f| f.clock == clock);
    let all_real = has(Clock::Real) && !has(Clock::Paused);
    let refused = |n: usize| {
        // The innermost one begins last; its outer ones hold it, too.
        let around = functions.iter().filter(|f| f.lines.0 <= n && n <= f.lines.1);
        around.map(|f| f.clock).rfind(|c| *c != Clock::Callers).map_or(all_real, |c| c == Clock::Real)
    };
    let sleeps =
        lines.iter().enumerate().filter(|(n, line)| sleeps(line) && (line.contains("thread::sleep(") || refused(*n)));
    let text = |(n, line): (usize, &&str)| format!("{}:{}: `{}`: {REASON}", source.path, first + n + 1, line.trim());
    sleeps.map(text).collect()
}

fn sleeps(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["sleep(", "sleep_until(", "interval(", "interval_at("].iter().any(|word| {
        code.match_indices(word).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// By their indentation, which is rustfmt's.
fn functions(lines: &[&str]) -> Vec<Function> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let words = line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
        let words = words.trim_start_matches("pub ").trim_start_matches("async ");
        if !words.starts_with("fn ") {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let Some(length) = lines[start..].iter().position(|l| *l == close) else { continue };
        let attributes = lines[..start].iter().rev().take_while(|l| l.trim_start().starts_with("#["));
        let body = &lines[start..=start + length];
        let attributes: Vec<&str> = attributes.copied().collect();
        found.push(Function { lines: (start, start + length), clock: clock(&attributes, body) });
    }
    found
}

fn clock(attributes: &[&str], body: &[&str]) -> Clock {
    let calls = |names: &[&str]| body.iter().any(|l| names.iter().any(|name| l.contains(name)));
    match attributes.iter().find(|a| a.contains("tokio::test")) {
        Some(test) if test.contains("start_paused") => Clock::Paused,
        Some(_) => Clock::Real,
        None if calls(&["run_real(", "run_real_with("]) => Clock::Real,
        None if attributes.iter().any(|a| a.contains("#[test]")) => Clock::Paused,
        None => Clock::Callers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Source::new("crates/app/a/src/x/tests.rs", text)).len()
    }

    fn function(attribute: &str, line: &str) -> String {
        format!("{attribute}\nasync fn f() {{\n    {line}\n}}\n")
    }

    #[test]
    fn a_test_on_the_real_clock_does_not_sleep() {
        let real = "#[tokio::test(flavor = \"multi_thread\")]";
        let paused = "#[tokio::test(start_paused = true)]";
        for (attribute, line, refused) in [
            ("#[tokio::test]", "tokio::time::sleep(d).await;", 1),
            (real, "let mut ticks = interval(d);", 1),
            (real, "spin_until(\"it is so\", || so).await;", 0),
            (real, "hooks::check_sleep(d); // sleep(d)", 0),
            (paused, "tokio::time::sleep(d).await;", 0),
            (paused, "std::thread::sleep(d);", 1),
            ("#[test]", "run_real(|kernel| async { sleep(d).await });", 1),
            ("#[test]", "run(1, |kernel| async { sleep(d).await });", 0),
            ("", "sleep(d).await;", 0),
        ] {
            assert_eq!(found(&function(attribute, line)), refused, "{attribute} {line}");
        }
        let helper = function("", "sleep(d).await;");
        assert_eq!(
            found(&format!("{helper}{}", function(real, "f().await;"))),
            1,
            "whose clock is real in all of the file"
        );
        let both = function(real, "f().await;") + &function(paused, "f().await;");
        assert_eq!(found(&format!("{helper}{both}")), 0);
        assert!(check(&Source::new("crates/app/a/src/x.rs", &function("", "sleep(d).await;"))).is_empty());
    }
}
