//! What is said over the socket of a pod: a length of four bytes, big end first, and as many bytes of JSON.
//!
//! A connection carries one request and its answer; `Exec` has a second answer when the process ended, `Watch` one per start and
//! end of a container. File descriptors for `Exec` and `Attach` come with the request's first byte (`SCM_RIGHTS`).

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::{ContainerPlan, ExitRecord, Held};

/// Bytes of a request.
pub const MAX_REQUEST: usize = 64 << 10;
/// Bytes of an answer.
pub const MAX_ANSWER: usize = 256 << 10;
/// Descriptors that come with a request: standard input, output, error.
pub const MAX_FDS: usize = 3;
/// Descriptors in a message of any kind.
pub(crate) const MAX_PASSED: usize = MAX_FDS + 4;

/// What a supervisor can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Create and start a container. Answer: [`Answer::Started`].
    Run {
        /// The container.
        container: ContainerPlan,
    },
    /// Send a signal to a container's first process. Answer: [`Answer::Done`], also when it has ended. SIGKILL for one that is being
    /// started is sent, and answered, when it is.
    Signal {
        /// The container.
        id: String,
        /// The signal's number.
        signal: i32,
    },
    /// Forget a container that has ended; its exit record is the caller's from here on. Answer: [`Answer::Done`].
    Forget {
        /// The container.
        id: String,
    },
    /// Run a process in a container on the descriptors that come along (or on a terminal, by `console`). The process ends with
    /// the connection. Answers: [`Answer::Started`], [`Answer::Exited`].
    Exec {
        /// The container.
        id: String,
        /// A file with the `process` of an OCI spec.
        process: PathBuf,
        /// A listening socket to which the terminal is passed.
        console: Option<PathBuf>,
        /// Nothing of it takes the OCI runtime: no label of SELinux, users of the pod's own, and nothing in `process` but arguments,
        /// environment, working directory, user, capabilities, limits, `noNewPrivileges`, `oomScoreAdj`, `terminal`, `apparmorProfile`, and, where the container has a
        /// seccomp profile, `seccompFilter` with the path of its filter. The supervisor runs it itself then. A server that knows nothing of this means no.
        #[serde(default)]
        direct: bool,
    },
    /// Copy a container's output to the descriptors that come along, and what comes from the first one to its input, until the
    /// connection ends. `None` in a place: no descriptor for that stream. Answers: [`Answer::Done`], [`Answer::Exited`].
    Attach {
        /// The container.
        id: String,
        /// The first descriptor is for input.
        stdin: bool,
        /// The next one is for output.
        stdout: bool,
        /// The next one is for errors.
        stderr: bool,
    },
    /// The size of a container's terminal. Answer: [`Answer::Done`].
    Resize {
        /// The container.
        id: String,
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Open the log anew: it was renamed. Answer: [`Answer::Done`].
    Reopen {
        /// The container.
        id: String,
    },
    /// All containers. Answer: [`Answer::State`].
    State,
    /// [`Answer::State`] now, [`Answer::Began`] at each start of a container and [`Answer::Event`] at each end.
    Watch,
    /// End, if no container runs. Answer: [`Answer::Done`].
    End,
}

/// What a supervisor answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// Done.
    Done,
    /// A container or process runs.
    Started {
        /// Its first process.
        pid: i32,
        /// Nanoseconds since 1970.
        started_at: i64,
    },
    /// The process, or the container that was attached to, has ended.
    Exited {
        /// As a shell has it.
        exit_code: i32,
    },
    /// All containers.
    State {
        /// In the order of their ids.
        containers: Vec<Held>,
    },
    /// A container was started, also for somebody else.
    Began {
        /// The container.
        id: String,
        /// Its first process.
        pid: i32,
        /// Nanoseconds since 1970.
        started_at: i64,
    },
    /// A container ended; its record is on the disk.
    Event {
        /// The container.
        id: String,
        /// How.
        exit: ExitRecord,
    },
    /// It could not be done.
    Failed {
        /// Why, mostly in the OCI runtime's words.
        why: String,
        /// There is no such container.
        unknown: bool,
    },
}

impl Answer {
    /// A failure that is not about an unknown container.
    #[must_use]
    pub fn failed(why: impl ToString) -> Self {
        Self::Failed { why: why.to_string(), unknown: false }
    }
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Longer than a message may be.
    #[error("a message of {0} bytes")]
    TooLong(usize),
    /// No such JSON.
    #[error("not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// A message with its length before it.
///
/// # Errors
/// It is longer than `most`.
pub fn frame<T: Serialize>(message: &T, most: usize) -> Result<Vec<u8>, WireError> {
    let mut out = vec![0; 4];
    serde_json::to_writer(&mut out, message)?;
    let length = out.len() - 4;
    let prefix = u32::try_from(length).ok().filter(|_| length <= most).ok_or(WireError::TooLong(length))?;
    out[..4].copy_from_slice(&prefix.to_be_bytes());
    Ok(out)
}

/// Takes the first message out of `buffer`, if it is whole.
///
/// # Errors
/// It is longer than `most`, or not such JSON.
pub fn unframe<T: DeserializeOwned>(buffer: &mut Vec<u8>, most: usize) -> Result<Option<T>, WireError> {
    let Some(prefix) = buffer.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
    if length > most {
        return Err(WireError::TooLong(length));
    }
    if buffer.len() < 4 + length {
        return Ok(None);
    }
    let message = serde_json::from_slice(&buffer[4..4 + length])?;
    buffer.drain(..4 + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_one_by_one_and_whole() {
        let first = Request::Signal { id: "a".into(), signal: 15 };
        let mut bytes = frame(&first, MAX_REQUEST).expect("short");
        bytes.extend(frame(&Request::State, MAX_REQUEST).expect("short"));
        let mut got = Vec::new();
        let mut buffer = Vec::new();
        for byte in bytes {
            buffer.push(byte);
            got.extend(unframe::<Request>(&mut buffer, MAX_REQUEST).expect("good"));
        }
        assert_eq!(got, [first, Request::State]);
        assert!(buffer.is_empty());
    }

    #[test]
    fn long_and_strange_messages_are_refused() {
        assert!(matches!(frame(&"x".repeat(100), 50), Err(WireError::TooLong(102))));
        let mut long = vec![0xff; 8];
        assert!(matches!(unframe::<Request>(&mut long, MAX_REQUEST), Err(WireError::TooLong(_))));
        let mut strange = frame(&serde_json::json!({"op": "fly"}), MAX_REQUEST).expect("short");
        assert!(matches!(unframe::<Request>(&mut strange, MAX_REQUEST), Err(WireError::Json(_))));
    }
}
