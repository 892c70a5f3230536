//! The `bosun` program: parses the command line and hands over.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bosun::cli::main()
}
