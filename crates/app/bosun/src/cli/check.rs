//! `bosun check-config`.

use std::path::Path;
use std::process::ExitCode;

use super::show::print;

pub(crate) fn check(file: &Path) -> ExitCode {
    match node_config::load(file) {
        Ok((_, warnings)) => {
            for w in &warnings {
                print(&format!("warning: {}: {w}", file.display()));
            }
            print(&format!("{}: fine, {} warning(s)", file.display(), warnings.len()));
            ExitCode::SUCCESS
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::FAILURE
        }
    }
}
