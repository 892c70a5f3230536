//! The project's own tool: `cargo xtask COMMAND`. One file per command; each starts with the question it answers.

#![forbid(unsafe_code)]

mod bed;
mod bench;
mod built;
mod conform;
mod demo;
mod e2e;
mod fuzz;
mod golden;
mod guest;
mod layers;
mod map;
mod mutants;
mod order;
mod outside;
mod setup;
mod sim;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Everything that is done to this repository beside writing it.
///
/// A fresh Debian machine needs `cargo xtask setup` once (as root). Then `cargo xtask demo` shows what bosun does,
/// `cargo xtask test` runs every test there is, and `cargo xtask bench` measures the daemon beside the bare runtime.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Setup(setup::Args),
    Test(test::Args),
    Demo(demo::Args),
    E2e(e2e::Args),
    Fuzz(fuzz::Args),
    Golden(golden::Args),
    Guest(guest::Args),
    Bed(bed::Args),
    Bench(bench::Args),
    Conform(conform::Args),
    Layers(layers::Args),
    Map(map::Args),
    Order(order::Args),
    Sim(sim::Args),
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        // What it runs has an exit code of its own.
        Command::Guest(args) => return guest::run(&args),
        Command::Sim(args) => return sim::run(&args),
        Command::Conform(args) => return conform::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::E2e(args) => e2e::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Golden(args) => golden::run(&args),
        Command::Bed(args) => bed::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Layers(args) => layers::run(&args),
        Command::Map(args) => map::run(&args),
        Command::Order(args) => order::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
