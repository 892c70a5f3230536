//! One line of a log file: CRI `<time> <stream> <tags> <content>`, or Docker's JSON.

use std::borrow::Cow;

use serde::Deserialize;

use crate::stamp::Stamp;

/// Which of its two outputs a container wrote to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Source {
    fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"stdout" => Some(Self::Stdout),
            b"stderr" => Some(Self::Stderr),
            _ => None,
        }
    }
}

/// A line, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// When it was written.
    pub stamp: Stamp,
    /// By which output. Only a JSON line can lack it, or name something else: then the word.
    pub source: Result<Source, String>,
    /// The container's bytes: with the line feed for a whole line, without it when more of the same line follows.
    pub content: Cow<'a, [u8]>,
}

/// A line that is not in the format of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadLine;

/// Format of a file, chosen by its first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// CRI.
    Cri,
    /// Docker's JSON.
    Json,
}

#[derive(Deserialize)]
struct JsonLine<'a> {
    #[serde(borrow, default)]
    log: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
}

impl Format {
    /// The format that accepts this line; CRI goes first.
    #[must_use]
    pub fn of(first: &[u8]) -> Option<Self> {
        [Self::Cri, Self::Json].into_iter().find(|f| f.parse(first).is_ok())
    }

    /// Takes a line apart. It may end in its line feed or lack it.
    ///
    /// # Errors
    /// It is not in this format.
    pub fn parse(self, line: &[u8]) -> Result<Line<'_>, BadLine> {
        match self {
            Self::Cri => {
                let head = Head::parse(line).ok_or(BadLine)?;
                let mut content = &line[head.len..];
                if head.partial {
                    content = content.strip_suffix(b"\n").unwrap_or(content);
                }
                Ok(Line { stamp: head.stamp, source: Ok(head.source), content: Cow::Borrowed(content) })
            }
            Self::Json => json(line),
        }
    }
}

fn json(line: &[u8]) -> Result<Line<'_>, BadLine> {
    let text = std::str::from_utf8(line).map_err(|_| BadLine)?;
    let line: JsonLine<'_> = serde_json::from_str(text).map_err(|_| BadLine)?;
    let stamp = match line.time {
        Some(time) => Stamp::parse(time.as_bytes()).ok_or(BadLine)?,
        None => Stamp::ZERO,
    };
    let stream = line.stream.unwrap_or_default();
    let content = match line.log.unwrap_or_default() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let source = Source::parse(stream.as_bytes()).ok_or_else(|| stream.into_owned());
    Ok(Line { stamp, source, content })
}

/// What stands before the content of a CRI line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) stamp: Stamp,
    pub(crate) source: Source,
    pub(crate) partial: bool,
    /// Bytes up to the content.
    pub(crate) len: usize,
}

impl Head {
    /// Of tags only the first counts, and everything but `P` is a whole line: runtimes may add others.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let (time, rest) = word(line)?;
        let stamp = Stamp::parse(time)?;
        let (stream, rest) = word(rest)?;
        let source = Source::parse(stream)?;
        let (tags, content) = word(rest)?;
        let partial = matches!(tags, b"P" | [b'P', b':', ..]);
        Some(Self { stamp, source, partial, len: line.len() - content.len() })
    }
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|b| *b == b' ')?;
    Some((&text[..end], &text[end + 1..]))
}
