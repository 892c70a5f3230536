//! Rules and their text form.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What happens at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The turn or effect panics.
    Panic,
    /// The actor dies without a panic message.
    Kill,
    /// The actor takes no turn for that long; the message under work is handled afterwards.
    Stall(Duration),
    /// The turn blocks its thread for that long, in real time: what a watchdog is for.
    Block(Duration),
    /// The message under work is handled that much later; others overtake it.
    Delay(Duration),
    /// The message is lost: tells of permitted messages only.
    Drop,
    /// The message is handled twice: permitted messages only.
    Duplicate,
}

/// Which of the matching passages are struck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// The n-th only, counted from 1 over all matching actors.
    Nth(u64),
    /// Each n-th; 1 = all.
    Every(u64),
    /// Each with this probability, from the kernel's seed.
    Prob(f64),
}

impl When {
    pub(super) fn hits(self, seen: u64, rng: &mut fastrand::Rng) -> bool {
        match self {
            When::Nth(n) => seen == n,
            When::Every(n) => n > 0 && seen.is_multiple_of(n),
            When::Prob(p) => rng.f64() < p,
        }
    }
}

/// A rule of the fault plan. Text form: `ACTOR: ACTION[@POINT][#WHEN]`.
///
/// - `ACTOR`: a name, which stands also for all names below it (`pod-worker` for `pod-worker/uid`), or a pattern with `*`.
/// - `ACTION`: `panic`, `kill`, `stall(30s)`, `delay(10ms)`, `drop`, `duplicate`.
/// - `POINT`: part of a point's name, or `=` and the whole of it; points are `started`, `turn:Message`, and those that actors
///   declare. None: any.
/// - `WHEN`: `2` the second passage, `%3` each third, `p0.1` each with probability 0.1. None: each.
///
/// `pod-worker/*: panic@before StartContainer#2`
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Name, parent name or pattern.
    pub actor: String,
    /// Part of a point's name, or `=` and the whole of it; empty for any.
    pub point: String,
    /// Which passages.
    pub when: When,
    /// What happens.
    pub action: Action,
}

/// A rule that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fault rule \"{rule}\": {reason}")]
pub struct RuleError {
    rule: String,
    reason: String,
}

impl Rule {
    pub(super) fn is_of(&self, actor: &str) -> bool {
        if self.actor.contains('*') {
            glob(&self.actor, actor)
        } else {
            actor.strip_prefix(self.actor.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    }

    pub(super) fn is_at(&self, point: &str) -> bool {
        match self.point.strip_prefix('=') {
            Some(whole) => point == whole,
            None => point.contains(self.point.as_str()),
        }
    }
}

/// `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => {
            let Some(rest) = text.strip_prefix(head) else { return false };
            rest.char_indices().map(|(i, _)| i).chain([rest.len()]).any(|i| glob(tail, &rest[i..]))
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let fail = |reason: String| RuleError { rule: text.to_owned(), reason };
        let (actor, rest) = text.split_once(':').ok_or_else(|| fail("no \":\" after the actor".into()))?;
        let actor = actor.trim();
        if actor.is_empty() {
            return Err(fail("no actor before \":\"".into()));
        }
        let (rest, when) = match rest.rsplit_once('#') {
            Some((rest, when)) => (rest, parse_when(when.trim()).map_err(fail)?),
            None => (rest, When::Every(1)),
        };
        let (action, point) = rest.split_once('@').unwrap_or((rest, ""));
        let action = parse_action(action.trim()).map_err(fail)?;
        Ok(Rule { actor: actor.to_owned(), point: point.trim().to_owned(), when, action })
    }
}

fn parse_when(text: &str) -> Result<When, String> {
    let wrong = || format!("\"#{text}\" is none of #2, #%3, #p0.1");
    let count = |n: &str| n.parse().ok().filter(|n| *n > 0).ok_or_else(wrong);
    match text.strip_prefix('%') {
        Some(n) => return count(n).map(When::Every),
        None if !text.starts_with('p') => return count(text).map(When::Nth),
        None => {}
    }
    let p: f64 = text[1..].parse().map_err(|_| wrong())?;
    if (0.0..=1.0).contains(&p) { Ok(When::Prob(p)) } else { Err(format!("probability {p} is not in 0 to 1")) }
}

fn parse_action(text: &str) -> Result<Action, String> {
    let (name, argument) = match text.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(|| format!("no \")\" in \"{text}\""))?)),
        None => (text, None),
    };
    match (name, argument) {
        ("panic", None) => Ok(Action::Panic),
        ("kill", None) => Ok(Action::Kill),
        ("drop", None) => Ok(Action::Drop),
        ("duplicate", None) => Ok(Action::Duplicate),
        ("stall", Some(d)) => parse_duration(d).map(Action::Stall),
        ("block", Some(d)) => parse_duration(d).map(Action::Block),
        ("delay", Some(d)) => parse_duration(d).map(Action::Delay),
        ("stall" | "delay" | "block", None) => Err(format!("{name} needs a time, as in {name}(10ms)")),
        _ => Err(format!("\"{text}\" is none of panic, kill, stall(TIME), delay(TIME), block(TIME), drop, duplicate")),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let wrong = || format!("\"{text}\" is no time: a whole number and us, ms, s, m or h");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let n: u64 = text[..unit_at].parse().map_err(|_| wrong())?;
    let micros = match &text[unit_at..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return Err(wrong()),
    };
    n.checked_mul(micros).map(Duration::from_micros).ok_or_else(wrong)
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Panic => f.write_str("panic"),
            Action::Kill => f.write_str("kill"),
            Action::Stall(d) => write!(f, "stall({})", Micros(*d)),
            Action::Block(d) => write!(f, "block({})", Micros(*d)),
            Action::Delay(d) => write!(f, "delay({})", Micros(*d)),
            Action::Drop => f.write_str("drop"),
            Action::Duplicate => f.write_str("duplicate"),
        }
    }
}

/// A duration in the largest unit that holds it whole.
struct Micros(Duration);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_micros() {
            n if n % 1_000_000 == 0 => write!(f, "{}s", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}ms", n / 1_000),
            n => write!(f, "{n}us"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.actor, self.action)?;
        if !self.point.is_empty() {
            write!(f, "@{}", self.point)?;
        }
        match self.when {
            When::Nth(n) => write!(f, "#{n}"),
            When::Every(1) => Ok(()),
            When::Every(n) => write!(f, "#%{n}"),
            When::Prob(p) => write!(f, "#p{p}"),
        }
    }
}
