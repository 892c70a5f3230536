//! What the containers of a fake runtime do.

use std::time::Duration;

/// The life of one container process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Ends by itself after this long with this code; `None`: runs until it is stopped.
    pub exit: Option<(Duration, i32)>,
    /// What a stop signal does.
    pub on_term: OnTerm,
    /// Start fails with this text (as with a bad command): the container ends with 128, `StartError`.
    pub fail_start: Option<String>,
    /// Start fails with this text, and the container stays as it was created.
    pub refuse_start: Option<String>,
    /// Written to the termination message file when it ends.
    pub message: Option<String>,
    /// Lines that it writes to its log when it starts.
    pub output: Vec<String>,
}

/// What a stop signal does to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerm {
    /// It ends after this long with this code, unless it is killed first.
    Exit(Duration, i32),
    /// It waits to be killed (137).
    Ignore,
}

impl Program {
    /// Runs for ever; a stop signal ends it at once with 0.
    #[must_use]
    pub fn forever() -> Self {
        Self {
            exit: None,
            on_term: OnTerm::Exit(Duration::ZERO, 0),
            fail_start: None,
            refuse_start: None,
            message: None,
            output: Vec::new(),
        }
    }

    /// Ends by itself.
    #[must_use]
    pub fn exits(after: Duration, code: i32) -> Self {
        Self { exit: Some((after, code)), ..Self::forever() }
    }

    /// Cannot be started.
    #[must_use]
    pub fn cannot_start(text: &str) -> Self {
        Self { fail_start: Some(text.to_owned()), ..Self::forever() }
    }

    /// The runtime refuses to start it, and leaves it as it is.
    #[must_use]
    pub fn is_refused(text: &str) -> Self {
        Self { refuse_start: Some(text.to_owned()), ..Self::forever() }
    }

    /// Sets what a stop signal does.
    #[must_use]
    pub fn on_term(mut self, on_term: OnTerm) -> Self {
        self.on_term = on_term;
        self
    }

    /// Sets the termination message.
    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        self.message = Some(text.to_owned());
        self
    }

    /// Sets the log output.
    #[must_use]
    pub fn output(mut self, lines: &[&str]) -> Self {
        self.output = lines.iter().map(|&l| l.to_owned()).collect();
        self
    }
}

/// Answer of a command that is run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ExecReply {
    /// Exit code.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How long it takes.
    pub takes: Duration,
}

/// What is asked of a container's command handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecCall {
    /// Pod name.
    pub pod: String,
    /// Container name.
    pub container: String,
    /// Command and arguments.
    pub command: Vec<String>,
}

/// How a registry answers for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// The pull succeeds after this long.
    Succeeds(Duration),
    /// The pull fails after this long.
    Fails(Duration, tonic::Code, String),
    /// As `Succeeds`, for those who bring this user name and password; others are refused.
    NeedsAuth(Duration, String, String),
    /// Never ends.
    Hangs,
}
