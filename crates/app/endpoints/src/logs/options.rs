//! The query of `/logs/` (interfaces 3.6).

use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use crate::respond::error;

const MAX_SERVICES: usize = 4;
const MAX_NAME: usize = 256;
const MAX_LINES: u64 = 100_000;

/// What is asked of the logs of services.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Query {
    /// At most four.
    pub(super) services: Vec<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) tail: Option<u64>,
    /// Regular expression, as the journal reads it.
    pub(super) pattern: Option<String>,
    /// 0: this boot, -1: the one before.
    pub(super) boot: Option<i64>,
}

impl Query {
    pub(super) fn has_options(&self) -> bool {
        *self != Self { services: self.services.clone(), ..Self::default() }
    }
}

/// What a request is after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// No query: a file or folder by the path.
    Nothing,
    /// A file below the root.
    File(String),
    /// Services.
    Services(Query),
}

/// Why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) code: u16,
    pub(super) text: String,
}

impl From<Refused> for Response {
    fn from(r: Refused) -> Self {
        error(StatusCode::from_u16(r.code).unwrap_or(StatusCode::BAD_REQUEST), r.text)
    }
}

fn malformed(field: &str, value: &str, reason: &str) -> Refused {
    Refused { code: 400, text: format!("{field}: Invalid value: {value:?}: {reason}") }
}

fn refused(field: &str, value: &str, reason: &str) -> Refused {
    Refused { code: 406, text: format!("{field}: Invalid value: {value:?}: {reason}") }
}

/// Reads and judges a query string.
pub(super) fn read(text: Option<&str>) -> Result<Asked, Refused> {
    let query = model::url::Query::parse(text.unwrap_or_default());
    let given = |name: &str| query.first(name).filter(|v| !v.is_empty());
    let all: Vec<&str> = query.all("query").collect();
    let (files, services): (Vec<&str>, Vec<&str>) =
        all.iter().filter(|q| !q.trim().is_empty()).partition(|q| q.contains(['/', '\\']));
    if !all.is_empty() && files.is_empty() && services.is_empty() {
        return Err(malformed("query", &all.join(","), "cannot be empty"));
    }
    let number = |name: &str| match given(name).map(|text| (text, text.parse::<i64>())) {
        None => Ok(None),
        Some((_, Ok(n))) => Ok(Some(n)),
        Some((text, Err(_))) => Err(malformed(name, text, "is no whole number")),
    };
    let time = |name: &str| match given(name).map(|text| (text, text.parse::<Timestamp>())) {
        None => Ok(None),
        Some((_, Ok(at))) => Ok(Some(at)),
        Some((text, Err(_))) => Err(malformed(name, text, "invalid time format, RFC 3339 is wanted")),
    };
    let (tail, boot) = (number("tailLines")?, number("boot")?);
    let query = Query {
        services: services.iter().map(|s| (*s).to_owned()).collect(),
        since: time("sinceTime")?,
        until: time("untilTime")?,
        tail: tail.map(|n| u64::try_from(n).unwrap_or(u64::MAX)),
        pattern: given("pattern").map(str::to_owned),
        boot,
    };
    judge(&files, query)
}

fn judge(files: &[&str], query: Query) -> Result<Asked, Refused> {
    let (named, options) = (!query.services.is_empty(), query.has_options());
    let listed = files.join(",");
    match files {
        [] if !named && !options => return Ok(Asked::Nothing),
        [] if !named => {
            return Err(Refused { code: 406, text: "query: Required value: cannot be empty with options".to_owned() });
        }
        [] => {}
        _ if named => return Err(refused("query", &listed, "cannot specify a file and service")),
        [_] if options => return Err(refused("query", &listed, "cannot specify file with options")),
        [one] => return Ok(Asked::File((*one).to_owned())),
        _ => return Err(refused("query", &listed, "cannot specify more than one file")),
    }
    if query.services.len() > MAX_SERVICES {
        return Err(refused("query", &query.services.join(","), "maximum number of services allowed is 4"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    for service in &query.services {
        if service.len() > MAX_NAME {
            return Err(refused("query", service, "length must not be more than 256"));
        }
        if !service.chars().all(fits) {
            return Err(refused("query", service, "only [a-zA-Z0-9-_.:@] are allowed"));
        }
    }
    if query.tail.is_some_and(|n| n > MAX_LINES) {
        return Err(refused("tailLines", &query.tail.unwrap_or(0).to_string(), "must be from 0 to 100000"));
    }
    if query.boot.is_some_and(|n| n > 0) {
        return Err(refused("boot", &query.boot.unwrap_or(0).to_string(), "must be less than 1"));
    }
    if let (Some(since), Some(until)) = (query.since, query.until)
        && until < since
    {
        return Err(refused("untilTime", &until.to_string(), "must be after `sinceTime`"));
    }
    if query.pattern.as_deref().is_some_and(|p| p.contains('\0')) {
        return Err(malformed("pattern", "", "must not hold a NUL"));
    }
    Ok(Asked::Services(query))
}
