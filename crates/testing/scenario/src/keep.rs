//! Scenarios that take decisions which no scenario of the corpus takes join it, made short.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scenario::{Coverage, Scenario, play, shrink};

/// For how long a scenario is made shorter.
const SHRINK: Duration = Duration::from_secs(120);

/// A scenario that was written.
pub(crate) struct Kept {
    pub(crate) file: PathBuf,
    /// Why.
    pub(crate) decisions: Vec<String>,
}

/// What the corpus covers.
pub(crate) fn covered(folder: &Path) -> Result<Coverage, String> {
    let text = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut coverage = Coverage::new();
    for entry in std::fs::read_dir(folder).map_err(text)? {
        let file = entry.map_err(text)?.path();
        let content = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let scenario = Scenario::from_text(&content).map_err(|e| format!("{}: {e}", file.display()))?;
        coverage.extend(play(&scenario.in_order(), false).coverage);
    }
    Ok(coverage)
}

/// Writes `scenario` into the corpus if it covers more than that, as short as it does.
pub(crate) fn scenario(
    folder: &Path,
    scenario: &Scenario,
    coverage: &Coverage,
    known: &Coverage,
) -> Result<Option<Kept>, String> {
    let decisions: Vec<String> = coverage.difference(known).cloned().collect();
    if decisions.is_empty() {
        return Ok(None);
    }
    let does = |candidate: &Scenario| {
        let outcome = play(candidate, false);
        let is_whole = outcome.counts[0] == candidate.steps.len();
        is_whole && outcome.findings.is_empty() && decisions.iter().all(|name| outcome.coverage.contains(name))
    };
    let short = shrink(scenario, SHRINK, does);
    let file = folder.join(format!("kept-{}.json", scenario.seed));
    std::fs::write(&file, short.to_text()).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(Some(Kept { file, decisions }))
}
