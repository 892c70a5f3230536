//! `bosun image`: the images of the node's own runtime, straight on their store. No daemon is needed; one that runs sees what changed.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use console::show::{self, Output, print};
use image_pull::reference::Reference;
use image_store::oci::Platform;
use image_store::{ImportOptions, Limits};

mod credentials;
mod list;
mod pull;
mod store;

use store::StoreArg;

/// What to do with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Pull an image from its registry, or what of it is not here yet.
    #[command(after_help = "Examples:\n  \
        bosun image pull busybox:1.36                           from Docker Hub\n  \
        bosun image pull quay.io/team/app@sha256:...            exactly this content\n  \
        bosun image pull r.example/app --creds me:s3cret        as a user; `ps` shows the password to everybody here:\n  \
        printf me:s3cret | bosun image pull r.example/app --creds-stdin\n  \
        bosun image pull app:1 --platform linux/arm64           for another machine\n\n\
        Mirrors, authorities and plain HTTP are told by DIR/HOST/hosts.toml, as containerd has it:\n  \
        server = \"https://r.example\"\n  \
        [host.\"http://mirror.example:5000\"]\n  \
        capabilities = [\"pull\", \"resolve\"]\n\n\
        A pull that was broken off goes on where it was.")]
    Pull(pull::PullArgs),
    /// List the images that are here.
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        store: StoreArg,
        /// Form of the answer; a table unless given.
        #[arg(short, long)]
        output: Option<Output>,
    },
    /// Remove names; an image goes with its last name, or at once where its id or digest is given.
    #[command(after_help = "Layers that containers run on stay until these are gone, whatever is removed.")]
    Rm {
        #[command(flatten)]
        store: StoreArg,
        /// Names, ids or beginnings of ids.
        #[arg(required = true)]
        images: Vec<String>,
        /// Also images that are pinned or that containers run on.
        #[arg(short, long)]
        force: bool,
    },
    /// Take the images of an archive in: what `docker save`, `skopeo`, `buildah` or `ctr export` wrote.
    #[command(after_help = "Examples:\n  \
        bosun image import app.tar                              plain or compressed\n  \
        docker save app:1 | bosun image import -                from a pipe\n  \
        bosun image import layout.tar --name r.example/app:1    under this name")]
    Import {
        #[command(flatten)]
        store: StoreArg,
        /// The archive; `-` for standard input.
        file: PathBuf,
        /// Name of the image, instead of those in the archive.
        #[arg(long)]
        name: Option<String>,
        /// Which image of several.
        #[arg(long, value_name = "OS/ARCH[/VARIANT]", default_value_t = Platform::own())]
        platform: Platform,
    },
}

/// Runs a command; mistakes are told on stderr.
pub(crate) fn run(command: &ImageCommand) -> ExitCode {
    let done = match command {
        ImageCommand::Pull(args) => pull::pull(args),
        ImageCommand::Ls { store, output } => ls(store, *output),
        ImageCommand::Rm { store, images, force } => rm(store, images, *force),
        ImageCommand::Import { store, file, name, platform } => import(store, file, name.clone(), platform.clone()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bosun: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn ls(store: &StoreArg, output: Option<Output>) -> Result<()> {
    let lines = match store.images().exists() {
        true => list::lines(&store.open()?)?,
        false => Vec::new(),
    };
    list::show(&lines, output, &store.images())
}

fn rm(args: &StoreArg, images: &[String], force: bool) -> Result<()> {
    let store = args.open()?;
    for name in images {
        let Some(image) = store.resolve(name)? else {
            bail!("no image {name:?}; `bosun image ls` lists those that are here");
        };
        let leases = store.leases()?;
        let holders: Vec<&str> = leases.iter().filter(|l| l.image == image.id).map(|l| l.holder.as_str()).collect();
        if !force && !holders.is_empty() {
            bail!(
                "{name} is in use by {}; --force removes it all the same, its layers stay until they are gone",
                holders.join(", ")
            );
        }
        if !force && image.pinned {
            bail!("{name} is pinned: the node needs it; --force removes it all the same");
        }
        let by_tag = Reference::parse(name).is_ok_and(|whole| image.repo_tags.contains(&whole.to_string()));
        let removed = if by_tag { store.untag(name, args.wait())? } else { store.remove(name, args.wait())? };
        for name in &removed.names {
            print(&format!("untagged {name}"));
        }
        if let Some(id) = removed.image {
            print(&format!("removed {id} ({} layers, {})", removed.layers, show::bytes(removed.bytes)));
        }
    }
    Ok(())
}

fn import(args: &StoreArg, file: &std::path::Path, name: Option<String>, platform: Platform) -> Result<()> {
    let from_stdin = file.as_os_str() == "-";
    let path = if from_stdin { std::path::Path::new("/dev/stdin") } else { file };
    let archive = File::open(path).with_context(|| format!("cannot open {}", file.display()))?;
    let store = args.open()?;
    let options = ImportOptions { name, platform, limits: Limits::default(), wait: args.wait(), pinned: false };
    let images = pull::waited("importing", || store.import(archive, &options))?;
    for image in images {
        let names =
            if image.repo_tags.is_empty() { "an image without a name".to_owned() } else { image.repo_tags.join(", ") };
        print(&format!("imported {names} ({}, {})", image.id, show::bytes(image.size_bytes)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
