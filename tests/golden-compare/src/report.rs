//! What came out, for people and for programs.

use serde_json::{Value, json};

use crate::documented::{EVERYWHERE, ON_OWN_RUNTIME, Row};

/// One case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Name.
    pub case: String,
    /// How many calls, versions and events were compared.
    pub compared: (usize, usize, usize),
    /// Why it was not run.
    pub skipped: Option<String>,
    /// Everything that differs.
    pub differences: Vec<String>,
}

/// All cases together with the rows of the documents.
#[derive(Clone, Debug)]
pub struct Report {
    /// The cases.
    pub outcomes: Vec<Outcome>,
    /// The rows.
    pub rows: Vec<Row>,
    /// All cases were run: a row that covers nothing is an error.
    pub complete: bool,
}

impl Report {
    fn row(&self, case: &str, difference: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.covers(case, difference))
    }

    fn unlisted<'a>(&'a self, outcome: &'a Outcome) -> impl Iterator<Item = &'a String> {
        outcome.differences.iter().filter(|d| self.row(&outcome.case, d).is_none())
    }

    /// Rows that nothing shows any more.
    pub fn gone(&self) -> Vec<&Row> {
        let shows = |row: &Row| self.outcomes.iter().any(|o| o.differences.iter().any(|d| row.covers(&o.case, d)));
        let ran = |row: &Row| {
            let named = |c: &String| self.outcomes.iter().any(|o| o.case == *c && o.skipped.is_none());
            if row.cases.is_empty() { self.complete } else { row.cases.iter().all(named) }
        };
        self.rows.iter().filter(|r| !r.at_times && ran(r) && !shows(r)).collect()
    }

    /// No difference without a row, no row without a difference.
    pub fn is_good(&self) -> bool {
        self.gone().is_empty() && self.outcomes.iter().all(|o| self.unlisted(o).next().is_none())
    }

    /// For people.
    pub fn table(&self) -> String {
        let width = self.outcomes.iter().map(|o| o.case.len()).max().unwrap_or(4).max(4);
        let mut out = format!("{:width$}  calls  versions  events  listed  unlisted  verdict\n", "case");
        for o in &self.outcomes {
            let (calls, versions, events) = o.compared;
            let unlisted = self.unlisted(o).count();
            let listed = o.differences.len() - unlisted;
            let verdict = match (&o.skipped, unlisted) {
                (Some(why), _) => format!("skipped: {why}"),
                (None, 0) if listed == 0 => "same".to_owned(),
                (None, 0) => "same but for listed differences".to_owned(),
                (None, _) => "DIFFERS".to_owned(),
            };
            out += &format!(
                "{:width$}  {calls:5}  {versions:8}  {events:6}  {listed:6}  {unlisted:8}  {verdict}\n",
                o.case
            );
        }
        for o in &self.outcomes {
            for difference in self.unlisted(o) {
                out += &format!("\n{}: {difference}", o.case);
            }
        }
        for row in self.gone() {
            out += &format!(
                "\nlisted in {} or {}, but not there: {:?}: {}",
                EVERYWHERE.0, ON_OWN_RUNTIME.0, row.cases, row.difference
            );
        }
        out.trim_end().to_owned()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let outcome = |o: &Outcome| {
            let difference = |d: &String| json!({ "difference": d, "why": self.row(&o.case, d).map(|r| &r.why) });
            json!({
                "case": o.case,
                "calls": o.compared.0,
                "versions": o.compared.1,
                "events": o.compared.2,
                "skipped": o.skipped,
                "differences": o.differences.iter().map(difference).collect::<Vec<_>>(),
            })
        };
        json!({
            "good": self.is_good(),
            "cases": self.outcomes.iter().map(outcome).collect::<Vec<_>>(),
            "gone": self.gone().iter().map(|r| &r.difference).collect::<Vec<_>>(),
        })
    }
}
