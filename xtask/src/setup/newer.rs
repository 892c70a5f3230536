//! A containerd 2.x beside Debian 12's own, for the tier with CRI events.
//!
//! Debian's next release has one, but built against its own libc. So that release is unpacked into a folder, and
//! copies of the programs are told to take loader and libraries from there; everything else is the machine's.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::workspace;

const PLACE: &str = "/var/cache/bosun-testbed";
const SUITE: &str = "forky";
const PROGRAMS: &[&str] = &["usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr", "usr/sbin/runc"];

/// The program that [`bring`] made.
pub(crate) fn containerd() -> anyhow::Result<PathBuf> {
    let path = Path::new(PLACE).join(format!("containerd-{SUITE}/containerd"));
    if !path.exists() {
        bail!("{} is not there: `cargo xtask setup --newer` brings it", path.display());
    }
    Ok(path)
}

/// Unpacks the release and makes the copies; skips what is there.
pub(super) fn bring() -> anyhow::Result<()> {
    if let Ok(there) = containerd() {
        println!("  have     {}", there.display());
        return Ok(());
    }
    println!("  step     apt-get install debootstrap patchelf");
    super::apt::install(&["debootstrap", "patchelf"])?;
    let place = Path::new(PLACE);
    std::fs::create_dir_all(place).with_context(|| format!("cannot create {PLACE}"))?;
    let root = place.join(SUITE);
    if !root.join(PROGRAMS[0]).exists() {
        println!("  step     debootstrap {SUITE} {} (about a minute)", root.display());
        let target = root.to_string_lossy();
        let script = "/usr/share/debootstrap/scripts/sid";
        let options = ["--variant=minbase", "--include=containerd,runc", SUITE, &target];
        let mirror = super::apt::archive(&super::apt::codename()?)?;
        workspace::run("debootstrap", &[options.as_slice(), [mirror.as_str(), script].as_slice()].concat())?;
    }
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let loader = std::fs::read_dir(&libraries)?.flatten().map(|e| e.path());
    let loader =
        loader.into_iter().find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("ld-linux")));
    let loader = loader.with_context(|| format!("no loader in {}", libraries.display()))?;
    let fresh = place.join(format!(".containerd-{SUITE}"));
    std::fs::create_dir_all(&fresh)?;
    for program in PROGRAMS {
        let copy = fresh.join(Path::new(program).file_name().unwrap_or_default());
        println!("  step     {} with its own libraries", copy.display());
        std::fs::copy(root.join(program), &copy).with_context(|| format!("cannot copy {program}"))?;
        let (copy, loader, libraries) = (copy.to_string_lossy(), loader.to_string_lossy(), libraries.to_string_lossy());
        workspace::run("patchelf", &["--set-interpreter", &loader, "--set-rpath", &libraries, &copy])?;
    }
    std::fs::rename(&fresh, place.join(format!("containerd-{SUITE}")))?;
    println!("  have     {}", containerd()?.display());
    Ok(())
}
