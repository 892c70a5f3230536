//! Each rule as rows of a table.

mod cdi;
mod fixture;
mod kernel;
mod mounting;
mod processes;
