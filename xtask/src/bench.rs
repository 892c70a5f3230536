//! What does bosun cost over the runtime's own time? Measured beside the floor, in the same run.
mod floor;
#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_args: &Args) -> anyhow::Result<()> {
    testbed::clean_on_signals();
    let bed = testbed::TestBed::start(testbed::Options::default())?;
    println!("{:?}", floor::measure(&bed, 10, 1)?);
    std::fs::copy(bed.dir().join("containerd.log"), "/tmp/containerd.log")?;
    println!("{:?}", floor::measure(&bed, 110, 8)?);
    println!("{:?}", bed.close());
    Ok(())
}
