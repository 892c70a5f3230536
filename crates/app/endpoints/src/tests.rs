//! The routes as a client sees them.

mod files;
mod fixture;
mod journal;
mod pages;
mod pods;
mod run;
mod switches;
