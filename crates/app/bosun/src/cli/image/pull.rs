//! `bosun image pull`, and what is shown while it takes its time.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use console::show::{self, print};
use image_pull::reference::Reference;
use image_store::Image;
use image_store::oci::Platform;
use registry::{Deadlines, LayerProgress, Phase, Progress, Puller, Request, Settings};
use tokio::time::{MissedTickBehavior, interval};

use super::credentials::CredentialArgs;
use super::store::StoreArg;
use crate::own_runtime::HOSTS_DIR;

/// What `bosun image pull` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    store: StoreArg,
    /// Name of the image: [HOST[:PORT]/]PATH[:TAG][@DIGEST].
    image: String,
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Folder with HOST/hosts.toml for mirrors and authorities; that of containerd unless given.
    #[arg(long, value_name = "DIR", default_value = HOSTS_DIR)]
    hosts_dir: PathBuf,
    /// The image for which machine.
    #[arg(long, value_name = "OS/ARCH[/VARIANT]", default_value_t = Platform::own())]
    platform: Platform,
    /// Never remove it as garbage.
    #[arg(long)]
    pin: bool,
    /// Show nothing but the image's id.
    #[arg(short, long)]
    quiet: bool,
}

/// Before this nobody wonders.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks on a terminal.
const LOOK: Duration = Duration::from_millis(200);
/// Between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

pub(super) fn pull(args: &PullArgs) -> Result<()> {
    let reference = Reference::parse(&args.image).with_context(|| format!("{:?}", args.image))?;
    let credentials = args.credentials.credentials(&reference.repository())?;
    let store = args.store.open()?;
    let before = store.resolve(&args.image)?.map(|image| image.changed_ns);
    let settings = Settings {
        hosts_dir: Some(args.hosts_dir.clone()),
        platform: args.platform.clone(),
        deadlines: Deadlines { store: args.store.wait(), ..Deadlines::default() },
        ..Settings::default()
    };
    let request = Request { image: args.image.clone(), credentials, pinned: args.pin };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let begun = Instant::now();
    let image = runtime.block_on(async {
        let progress = Progress::default();
        let puller = Puller::new(store, settings);
        tokio::select! {
            image = puller.pull(&request, &progress) => image,
            never = told(&progress, args.quiet) => match never {},
        }
    });
    clear();
    let image = image.with_context(|| format!("cannot pull {reference}"))?;
    let unchanged = before == Some(image.changed_ns);
    print(&if args.quiet { image.id.to_string() } else { verdict(&reference, &image, unchanged, begun.elapsed()) });
    Ok(())
}

fn verdict(reference: &Reference, image: &Image, unchanged: bool, took: Duration) -> String {
    match unchanged {
        true => format!("{reference} is up to date ({})", image.id),
        false => {
            let (layers, size) = (image.layers.len(), show::bytes(image.size_bytes));
            format!("pulled {reference} ({}, {layers} layers, {size} on disk) in {:.1} s", image.id, took.as_secs_f32())
        }
    }
}

/// Shows how far it is, until it is dropped.
async fn told(progress: &Progress, quiet: bool) -> std::convert::Infallible {
    if quiet {
        std::future::pending::<()>().await;
    }
    let terminal = stderr().is_terminal();
    let begun = Instant::now();
    tokio::time::sleep(PATIENCE).await;
    let mut ticks = interval(if terminal { LOOK } else { LINE });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let line = line(&progress.layers(), begun.elapsed());
        // Who closed it does not want to know.
        drop(if terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") });
    }
}

fn clear() {
    if stderr().is_terminal() {
        drop(write!(stderr(), "\r\x1b[K"));
    }
}

/// How far a pull is, in one line.
pub(super) fn line(layers: &[LayerProgress], took: Duration) -> String {
    if layers.is_empty() {
        return format!("asking the registry, {} s", took.as_secs());
    }
    let (have, size) = layers.iter().fold((0, 0), |(have, size), l| (have + l.have, size + l.size));
    let count = |phase| layers.iter().filter(|l| l.phase == phase).count();
    let done = count(Phase::Done);
    let unpacking = match count(Phase::Unpacking) {
        0 if done == layers.len() => ", bringing it to disk".to_owned(),
        0 => String::new(),
        n => format!(", unpacking {n}"),
    };
    let rate = match have == size {
        true => String::new(),
        false => format!(", {}/s", show::bytes((have as f64 / took.as_secs_f64().max(0.1)) as u64)),
    };
    let (have, size) = (show::bytes(have), show::bytes(size));
    format!("{done} of {} layers, {have} of {size}{rate}{unpacking}", layers.len())
}

/// Does work that may take its time; on a terminal it is told that it does.
pub(super) fn waited<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut seconds = 0;
            while waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                seconds += 1;
                drop(write!(stderr(), "\r\x1b[K{what}, {seconds} s"));
            }
            if seconds > 0 {
                clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}
