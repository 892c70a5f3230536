//! What is told at the end.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

/// What became of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// Its name.
    pub case: &'static str,
    /// Where the rule stands.
    pub source: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Why the rule is broken; absent: it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// How long it took, in milliseconds of real time.
    pub took_ms: u64,
}

/// What became of all.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The role.
    pub role: &'static str,
    /// Who was tried.
    pub manager: String,
    /// Case by case.
    pub cases: Vec<Verdict>,
    /// Names of cases that cannot be played against it: they need its clock, its disk, or one that begins with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
    /// How long all took, in milliseconds of real time.
    pub took_ms: u64,
}

impl Report {
    /// How many rules are broken.
    #[must_use]
    pub fn broken(&self) -> usize {
        self.cases.iter().filter(|verdict| verdict.broken.is_some()).count()
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("\"no JSON: {e}\""))
    }

    /// As a table for people: a line per case, and below a broken one the rule and what happened.
    #[must_use]
    pub fn table(&self) -> String {
        let wide = |text: fn(&Verdict) -> &str| self.cases.iter().map(|v| text(v).len()).max().unwrap_or(0);
        let (name, source) = (wide(|v| v.case), wide(|v| v.source));
        let mut out = format!("{:name$}  {:source$}  {:7}  {:>8}\n", "CASE", "RULE OF", "VERDICT", "TOOK");
        for verdict in &self.cases {
            let said = if verdict.broken.is_some() { "BROKEN" } else { "kept" };
            let took = Duration::from_millis(verdict.took_ms).as_secs_f64();
            let _infallible =
                writeln!(out, "{:name$}  {:source$}  {said:7}  {took:6.1} s", verdict.case, verdict.source);
            if let Some(why) = &verdict.broken {
                let _infallible = writeln!(out, "    wanted: {}\n    found:  {why}", verdict.rule);
            }
        }
        let (all, broken) = (self.cases.len(), self.broken());
        let took = Duration::from_millis(self.took_ms).as_secs_f64();
        let _infallible = writeln!(
            out,
            "{}: {} keeps {} of {all} rules, {broken} broken, {took:.1} s",
            self.role,
            self.manager,
            all - broken
        );
        if !self.left_out.is_empty() {
            let names = self.left_out.join(", ");
            let _infallible = writeln!(out, "not played, as they need its clock, its disk, or a new process: {names}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_a_broken_rule_is_told() {
        let verdict = |case, broken: Option<&str>| Verdict {
            case,
            source: "contract",
            rule: "a rule",
            broken: broken.map(str::to_owned),
            took_ms: 1234,
        };
        let cases = vec![verdict("short", None), verdict("longer-one", Some("it was not so"))];
        let report = Report { role: "R", manager: "m".to_owned(), cases, left_out: vec!["inside"], took_ms: 2000 };
        let wanted = "CASE        RULE OF   VERDICT      TOOK\n\
                      short       contract  kept        1.2 s\n\
                      longer-one  contract  BROKEN      1.2 s\n    \
                      wanted: a rule\n    found:  it was not so\n\
                      R: m keeps 1 of 2 rules, 1 broken, 2.0 s\n\
                      not played, as they need its clock, its disk, or a new process: inside\n";
        assert_eq!(report.table(), wanted);
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["cases"][1]["broken"], "it was not so");
        assert!(json["cases"][0].get("broken").is_none());
    }
}
