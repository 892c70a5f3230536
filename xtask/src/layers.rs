//! Does any crate depend on something above or beside it?
#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_args: &Args) -> anyhow::Result<()> { Ok(()) }
