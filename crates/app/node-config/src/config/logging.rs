//! The log of this daemon.

/// Form of the daemon's own log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Verbosity of single source files (`logging.vmodule`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileVerbosity {
    /// Glob over the name of a source file without its ending.
    pub file_pattern: String,
    /// Verbosity of those files, as in klog.
    pub verbosity: u32,
}

/// The log of this daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logging {
    /// Form of the daemon's log.
    pub format: LogFormat,
    /// `logging.verbosity`, `-v`: verbosity of the daemon's log, as in klog.
    pub verbosity: u32,
    /// `logging.vmodule`: verbosity of single files (text form only).
    pub vmodule: Vec<FileVerbosity>,
    /// `logging.options.<format>.splitStream`: lines of no error go to standard output.
    pub split_stream: bool,
}

impl Default for Logging {
    fn default() -> Self {
        Self { format: LogFormat::Text, verbosity: 0, vmodule: Vec::new(), split_stream: false }
    }
}
