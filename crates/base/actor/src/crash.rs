//! Catching panics, and what is kept of them.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// Frames that a short backtrace keeps.
const SHORT_FRAMES: usize = 12;

/// Payload of a kill: unwinds past the panic hook.
pub(crate) struct Killed(pub(crate) String);

/// A caught panic.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(crate) cause: String,
    pub(crate) location: Option<String>,
    backtrace: Option<Backtrace>,
}

impl Caught {
    /// An end that was no panic.
    pub(crate) fn of(cause: String) -> Self {
        Caught { cause, location: None, backtrace: None }
    }
}

/// A crash of an actor.
#[derive(Debug)]
pub(crate) struct Crash {
    pub(crate) caught: Caught,
    /// Message, timer or phase under work.
    pub(crate) during: String,
    pub(crate) generation: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.caught.cause)?;
        if !self.during.is_empty() {
            write!(f, ", in {}", self.during)?;
        }
        match &self.caught.location {
            Some(at) => write!(f, ", at {at} (generation {})", self.generation),
            None => write!(f, " (generation {})", self.generation),
        }
    }
}

impl Crash {
    /// The frames between the panic and the kernel. Looks up symbols: slow the first time.
    pub(crate) fn short_backtrace(&self) -> Option<String> {
        let full = self.caught.backtrace.as_ref()?.to_string();
        let mut out = Vec::new();
        let lines = full.lines().skip_while(|l| !l.contains("rust_begin_unwind") && !l.contains("begin_panic_handler"));
        let mut keep = false;
        for line in lines {
            if line.trim_start().starts_with("at ") {
                if keep {
                    out.push(line.trim_end().to_owned());
                }
                continue;
            }
            if out.len() >= 2 * SHORT_FRAMES || line.contains("actor::crash::guarded") {
                break;
            }
            keep = !is_plumbing(line);
            if keep {
                out.push(line.trim_end().to_owned());
            }
        }
        Some(out.join("\n"))
    }
}

fn is_plumbing(line: &str) -> bool {
    let symbol = line.split_once(": ").map_or(line, |(_, s)| s).trim_start_matches('<');
    ["std::", "core::", "alloc::", "actix::", "tokio::", "rust_begin_unwind", "__rust"]
        .iter()
        .any(|p| symbol.starts_with(p))
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Caught>> = const { RefCell::new(None) };
}

/// Takes panics of guarded code aside, quietly; passes all others to the hook that was there before.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDED.try_with(Cell::get).unwrap_or(false) {
                note(info);
            } else {
                before(info);
            }
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let caught = Caught {
        cause: format!("panic: {}", text(info.payload())),
        location: info.location().map(ToString::to_string),
        // Frames only; symbols are looked up when somebody reads them.
        backtrace: Some(Backtrace::force_capture()),
    };
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(caught));
}

fn text(payload: &dyn Any) -> String {
    if let Some(s) = payload.downcast_ref::<&str>() {
        (*s).to_owned()
    } else if let Some(s) = payload.downcast_ref::<String>() {
        s.clone()
    } else {
        "(not a text)".to_owned()
    }
}

/// Runs code that may panic; gives the panic back as a value.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Caught> {
    let was = GUARDED.try_with(|g| g.replace(true)).unwrap_or(false);
    let result = catch_unwind(AssertUnwindSafe(f));
    let _ = GUARDED.try_with(|g| g.set(was));
    result.map_err(|payload| {
        // A panic that was caught on another thread.
        let payload = match payload.downcast::<Caught>() {
            Ok(caught) => return *caught,
            Err(other) => other,
        };
        let noted = LAST.try_with(|last| last.borrow_mut().take()).ok().flatten();
        let caught = match payload.downcast_ref::<Killed>() {
            Some(Killed(by)) => Caught::of(format!("killed: {by}")),
            None => noted.unwrap_or_else(|| Caught::of(format!("panic: {}", text(&*payload)))),
        };
        // A payload may panic when dropped; it is not worth a process.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
        caught
    })
}

/// Runs the farewell of what ends anyway; a panic in it is logged.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(caught) = guarded(f) {
        log_last_words(&caught);
    }
}

/// Logs a panic of what ends anyway.
pub(crate) fn log_last_words(caught: &Caught) {
    tracing::error!(target: "actor", cause = %caught.cause, at = caught.location.as_deref(), "panicked while it stopped");
}
