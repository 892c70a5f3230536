//! Faults of single calls.

use std::time::Duration;

use tonic::{Code, Status};

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Answers an error; nothing happens.
    Error(Code, String),
    /// Takes effect, then answers an error.
    ErrorAfter(Code, String),
    /// Never answers; nothing happens.
    Hang,
    /// Takes effect and answers once all faults are ended.
    Hold,
    /// Takes effect and answers after this long, if the caller is still there.
    Delay(Duration),
    /// Takes effect after this long whether or not the caller waits for it.
    Late(Duration),
    /// Every connection breaks; nothing happens.
    Disconnect,
}

/// A fault for calls of one RPC.
#[derive(Clone, Debug)]
pub struct Fault {
    rpc: String,
    matching: String,
    skip: u32,
    times: Option<u32>,
    kind: FaultKind,
}

impl Fault {
    /// For every call of `rpc` (its CRI name; `*`: any).
    #[must_use]
    pub fn new(rpc: &str, kind: FaultKind) -> Self {
        Self { rpc: rpc.to_owned(), matching: String::new(), skip: 0, times: None, kind }
    }

    /// An error.
    #[must_use]
    pub fn error(rpc: &str, code: Code, message: &str) -> Self {
        Self::new(rpc, FaultKind::Error(code, message.to_owned()))
    }

    /// A hang.
    #[must_use]
    pub fn hang(rpc: &str) -> Self {
        Self::new(rpc, FaultKind::Hang)
    }

    /// A hang that ends with [`super::FakeRuntime::clear_faults`].
    #[must_use]
    pub fn hold(rpc: &str) -> Self {
        Self::new(rpc, FaultKind::Hold)
    }

    /// A delay.
    #[must_use]
    pub fn delay(rpc: &str, by: Duration) -> Self {
        Self::new(rpc, FaultKind::Delay(by))
    }

    /// Only for calls whose subject (`namespace/pod` or `namespace/pod/container` or image) holds this text.
    #[must_use]
    pub fn matching(mut self, text: &str) -> Self {
        text.clone_into(&mut self.matching);
        self
    }

    /// Lets the first `n` calls pass.
    #[must_use]
    pub fn after(mut self, n: u32) -> Self {
        self.skip = n;
        self
    }

    /// Only for `n` calls, then never again.
    #[must_use]
    pub fn times(mut self, n: u32) -> Self {
        self.times = Some(n);
        self
    }

    fn applies(&mut self, rpc: &str, subject: &str) -> Option<FaultKind> {
        if (self.rpc != "*" && self.rpc != rpc) || !subject.contains(&self.matching) || self.times == Some(0) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if let Some(n) = &mut self.times {
            *n -= 1;
        }
        Some(self.kind.clone())
    }
}

/// The faults in force; the first that applies wins.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn strike(&mut self, rpc: &str, subject: &str) -> Option<FaultKind> {
        self.0.iter_mut().find_map(|f| f.applies(rpc, subject))
    }
}

pub(super) fn status(code: Code, message: impl Into<String>) -> Status {
    Status::new(code, message)
}
