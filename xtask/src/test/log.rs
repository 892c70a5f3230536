//! A step's output: on the terminal, and kept in a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::workspace;

/// How long the output of a program that has ended is waited for: what it left running may hold it open for ever.
const LINGERING: Duration = Duration::from_secs(10);

/// The output of one step.
pub(super) struct Log {
    path: PathBuf,
    /// Others are on the terminal: what it says goes into the file alone, and it takes what they leave of the processors.
    is_beside: bool,
}

impl Log {
    /// An empty one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(super) fn new(folder: &Path, step: &str, is_beside: bool) -> anyhow::Result<Self> {
        let path = folder.join(format!("{step}.log"));
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        File::create(&path).with_context(|| path.display().to_string())?;
        Ok(Log { path, is_beside })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All that was said so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let bytes = std::fs::read(&self.path).with_context(|| self.path.display().to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs a program in the root of the repository; what it says goes to the terminal and into the log, in its order.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub(super) fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<()> {
        self.run_with(program, args, &[])
    }

    /// As [`Log::run`], with environment variables.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub(super) fn run_with(&self, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
        let log = File::options().append(true).open(&self.path).with_context(|| self.path.display().to_string())?;
        let (said, both) = std::io::pipe()?;
        let words = [&["nice", "-n", "19", program][if self.is_beside { 0 } else { 3 }..], args].concat();
        let mut command = workspace::command(words[0]);
        command.args(&words[1..]).envs(env.iter().copied()).stdout(both.try_clone()?).stderr(both);
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        // Our copies of the writing end go, so that the pipe ends with the child.
        drop(command);
        let (done, copied) = mpsc::channel();
        let is_shown = !self.is_beside;
        std::thread::spawn(move || done.send(copy(said, log, is_shown)));
        let status = child.wait()?;
        match copied.recv_timeout(LINGERING) {
            Ok(result) => result?,
            Err(_) => println!("(something that `{program}` has started holds its output still)"),
        }
        if !status.success() {
            bail!("`{program} {}` ended with {status}", args.join(" "));
        }
        Ok(())
    }
}

fn copy(said: impl Read, mut log: File, is_shown: bool) -> std::io::Result<()> {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    while said.read_until(b'\n', &mut line)? > 0 {
        log.write_all(&line)?;
        if is_shown {
            std::io::stdout().write_all(&line)?;
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_program_says_is_kept_and_its_failure_is_told() {
        let folder = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
        let ours = std::process::Command::new("nice").output().unwrap().stdout;
        let ours = String::from_utf8(ours).unwrap();
        for (is_beside, priority) in [(false, ours.trim()), (true, "19")] {
            let log = Log::new(&folder, "step", is_beside).unwrap();
            log.run("sh", &["-c", "nice; echo err >&2"]).unwrap();
            let error = log.run("sh", &["-c", "printf 'no end of line' >&2; exit 3"]).unwrap_err().to_string();
            assert!(error.ends_with("exit status: 3"), "{error}");
            assert_eq!(log.text().unwrap(), format!("{priority}\nerr\nno end of line"));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
