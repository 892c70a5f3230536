//! Each rule as rows of a table.

mod fixture;
mod kernel;
mod mounting;
mod processes;
