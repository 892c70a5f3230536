//! Plugins as programs: scripts that note what they are told, and the real bridge in a network namespace of its own.

mod bed;
mod bridge;
mod scripts;
