//! bosun's own StatusManager in a process of its own.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use status_manager::StatusManager;

fn main() -> ExitCode {
    bosun_manager_sdk::main(|crew, outside| StatusManager::new(crew).with_journal(outside.journal.clone()))
}
