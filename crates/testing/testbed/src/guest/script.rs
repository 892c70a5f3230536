//! Scripts that run in a guest: a file in the shared folder, and what it printed and its exit code beside it.

use std::path::PathBuf;
use std::time::Duration;

use super::Guest;
use crate::bed::tail;
use crate::error::file;
use crate::{BedError, wait_until};

/// A script that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed, errors among it.
    pub output: String,
}

impl Guest {
    /// Runs a script with the guest's bash, and waits for its end. Scripts of several threads run side by side.
    ///
    /// # Errors
    /// When the guest is off or the script has not ended after `limit`; what it printed so far is in the error.
    pub fn run(&self, script: &str, limit: Duration) -> Result<Ran, BedError> {
        self.run_shown(script, limit, &mut |_| {})
    }

    /// As [`Self::run`]; `shown` is given what the script prints, as it does.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_shown(&self, script: &str, limit: Duration, shown: &mut dyn FnMut(&str)) -> Result<Ran, BedError> {
        let place = self.send(script)?;
        let (out, rc) = (place.with_extension("out"), place.with_extension("rc"));
        let mut read = 0;
        let mut show = || {
            let text = std::fs::read(&out).unwrap_or_default();
            shown(&String::from_utf8_lossy(text.get(read..).unwrap_or_default()));
            read = text.len();
        };
        let code = wait_until("a script in the guest", limit, || {
            show();
            // Looked for first: it may end between the two looks.
            let code = std::fs::read_to_string(&rc).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok());
            self.alive()?;
            code.ok_or_else(|| format!("{script}\n{}", tail(&out, 25)))
        })?;
        show();
        let output = String::from_utf8_lossy(&file("read", &out, std::fs::read(&out))?).into_owned();
        for done in ["sh", "out", "rc"].map(|extension| place.with_extension(extension)) {
            file("remove", &done, std::fs::remove_file(&done))?;
        }
        Ok(Ran { code, output })
    }

    /// Runs a script that must not fail; what it printed is the answer.
    ///
    /// # Errors
    /// As [`Self::run`], and when the script ends with another code than 0.
    pub fn sh(&self, script: &str) -> Result<String, BedError> {
        let ran = self.run(script, Duration::from_secs(120))?;
        if ran.code == 0 {
            return Ok(ran.output);
        }
        Err(BedError::Command { command: format!("guest: {script}"), output: format!("{}: {}", ran.code, ran.output) })
    }

    /// Puts a file on the guest's own disk, complete at once, as a careful user does.
    ///
    /// # Errors
    /// As [`Self::sh`].
    pub fn put(&self, path: &str, text: &str) -> Result<(), BedError> {
        let name = format!("put-{}", self.number());
        let shared = self.share_dir().join(&name);
        file("write", &shared, std::fs::write(&shared, text))?;
        let (folder, leaf) = path.rsplit_once('/').unwrap_or((".", path));
        let script = format!(
            "set -e; mkdir -p '{folder}'; cp '/share/{name}' '{folder}/.{leaf}.new'; mv '{folder}/.{leaf}.new' '{path}'; \
             rm '/share/{name}'"
        );
        self.sh(&script).map(drop)
    }

    fn send(&self, script: &str) -> Result<PathBuf, BedError> {
        let place = self.share_dir().join("q").join(format!("s{}", self.number()));
        let (hidden, ready) = (place.with_extension("new"), place.with_extension("sh"));
        file("write", &hidden, std::fs::write(&hidden, format!("{script}\n")))?;
        file("rename", &ready, std::fs::rename(&hidden, &ready))?;
        Ok(place)
    }

    fn number(&self) -> u32 {
        self.scripts.set(self.scripts.get() + 1);
        self.scripts.get()
    }
}
