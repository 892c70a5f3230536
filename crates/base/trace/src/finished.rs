//! What is told of a span.

use std::borrow::Cow;
use std::num::NonZeroU64;

use crate::context::Context;

/// How a span stands to its children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Work of this process.
    Internal,
    /// A request that was answered here.
    Server,
    /// A request to somebody else.
    Client,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Int(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

/// A span that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Itself.
    pub context: Context,
    /// The span that it is a part of; `None`: its trace begins with it.
    pub parent: Option<NonZeroU64>,
    /// The parent is in another process.
    pub is_remote: bool,
    /// What was done.
    pub name: Cow<'static, str>,
    /// How it stands to its children.
    pub kind: Kind,
    /// Nanoseconds since 1970.
    pub began_ns: u64,
    /// Nanoseconds since 1970, not before it began.
    pub ended_ns: u64,
    /// More about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, when it did.
    pub error: Option<String>,
}
