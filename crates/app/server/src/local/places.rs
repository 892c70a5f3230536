//! Who serves the roles that may be served elsewhere: what is shown of it, and who changes it.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// `GET /v1/managers/{name}`; `GET /v1/managers` has all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagerLine {
    /// Its name on the command line.
    pub name: String,
    /// The role.
    pub role: String,
    /// `builtin`, or the address of the process that serves it.
    pub served_by: String,
    /// Program and version, of a process that is there.
    pub program: Option<String>,
    /// Why the process is away that has the place, or that is to have it.
    pub away: Option<String>,
    /// Since when it is served by this one, nanoseconds since the epoch.
    pub since_ns: i64,
    /// What was chosen: `builtin` or an address. It differs from `servedBy` while the chosen one is away.
    pub chosen: String,
    /// Who chose: `nobody`, `configuration` or `command`.
    pub chosen_by: String,
    /// What a restart of the daemon makes of it: what the configuration says.
    pub after_restart: String,
    /// What `bosun manager rollback` would go back to.
    pub before: Option<String>,
    /// How much of a probation is left.
    pub probation_left_ms: Option<u64>,
    /// Asks since this one has the place.
    pub asked: Vec<AskedLine>,
    /// Messages that another one would be told when it takes the place.
    pub remembered: u64,
    /// What was refused of a process elsewhere.
    pub refused: Option<RefusedLine>,
    /// What happened to the place, oldest first.
    pub history: Vec<HistoryLine>,
    /// A candidate that is shown what is asked, or was last.
    pub shadow: Option<ShadowLine>,
}

/// Asks of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedLine {
    /// The message.
    pub message: String,
    /// Answers.
    pub answered: u64,
    /// Answers that are failures.
    pub failed: u64,
    /// Asks that expired.
    pub expired: u64,
    /// Asks that ended otherwise without an answer.
    pub lost: u64,
    /// Half of the answers came within so many microseconds (to a factor of two).
    pub half_within_us: Option<u64>,
    /// Ninety-nine of a hundred did.
    pub most_within_us: Option<u64>,
}

/// What was refused of a process elsewhere, since it has the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedLine {
    /// Rows.
    pub rows: u64,
    /// Messages.
    pub calls: u64,
    /// Answers.
    pub answers: u64,
    /// Keys of the journal.
    pub keys: u64,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryLine {
    /// When, nanoseconds since the epoch.
    pub at_ns: i64,
    /// What and why.
    pub text: String,
}

/// A candidate beside the one in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowLine {
    /// Its address.
    pub candidate: String,
    /// It is still shown what is asked.
    pub running: bool,
    /// Why it ended.
    pub ended: Option<String>,
    /// Answers that were compared.
    pub compared: u64,
    /// Those that were the same.
    pub same: u64,
    /// Messages that it was not shown, for it was too slow.
    pub passed_over: u64,
    /// Rows that are the same now, of all rows of either.
    pub rows: (u64, u64),
    /// The first differences, each once.
    pub differences: Vec<DifferenceLine>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceLine {
    /// The message or the board, with the pod.
    pub of: String,
    /// The place in the answer or row, as a JSON pointer.
    pub at: String,
    /// What the one in force says; `-`: nothing.
    pub ours: String,
    /// What the candidate says.
    pub theirs: String,
    /// How often.
    pub count: u64,
}

/// `POST /v1/managers/{name}/swap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwapOrder {
    /// `builtin` or `unix:///PATH`.
    pub to: String,
    /// Only looks whether it could be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Changes nothing, and shows the other one what is asked for as long as the probation is.
    #[serde(default)]
    pub shadow: bool,
    /// Such as `60s`; absent: that.
    #[serde(default)]
    pub probation: Option<String>,
    /// `builtin`, `hold` or `fail`; absent: `builtin`.
    #[serde(default)]
    pub when_away: Option<String>,
}

/// What was done, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Line by line.
    pub lines: Vec<String>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDone {
    /// The order makes no sense, or not now.
    Refused(String),
    /// It was tried, and all is as before.
    Failed(String),
}

/// Who changes places.
pub trait Managers: Send + Sync + 'static {
    /// How all of them stand.
    fn lines(&self) -> Vec<ManagerLine>;
    /// Gives the place of one to another.
    fn swap(&self, name: &str, order: SwapOrder) -> BoxFuture<'static, Result<Done, NotDone>>;
    /// Gives it back.
    fn roll_back(&self, name: &str) -> BoxFuture<'static, Result<Done, NotDone>>;
}
