//! Debian packages, without starting what they bring.

use std::process::Command;

use anyhow::{Context, bail};

/// Who installs holds it: apt serves one at a time, and its own patience is not for all of its locks.
const LOCK: &str = "/run/bosun-xtask-apt.lock";

/// Installs Debian packages, after whoever else does so from here.
pub(crate) fn install(packages: &[&str]) -> anyhow::Result<()> {
    if Command::new("apt-get").arg("--version").output().is_err() {
        bail!("no apt-get here: install these by hand: {}", packages.join(" "));
    }
    let lock = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(LOCK);
    let lock = lock.with_context(|| format!("cannot write {LOCK}"))?;
    lock.lock().with_context(|| format!("cannot lock {LOCK}"))?;
    println!("  step     apt-get update");
    apt(&["update", "-qq"])?;
    println!("  step     apt-get install {}", packages.join(" "));
    // A file that forbids service starts while packages are set up; Debian's own way (invoke-rc.d, policy-rc.d).
    let policy = std::path::Path::new("/usr/sbin/policy-rc.d");
    let ours = !policy.exists();
    if ours {
        std::fs::write(policy, "#!/bin/sh\nexit 101\n").context("cannot write /usr/sbin/policy-rc.d")?;
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(policy, std::fs::Permissions::from_mode(0o755))?;
    }
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend(packages);
    let done = apt(&args);
    if ours {
        std::fs::remove_file(policy).context("cannot remove /usr/sbin/policy-rc.d")?;
    }
    done
}

fn apt(args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").output()?;
    if !output.status.success() {
        bail!("apt-get {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Codename of the machine's Debian.
pub(crate) fn codename() -> anyhow::Result<String> {
    let release = std::fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let codename = release.lines().find_map(|l| l.strip_prefix("VERSION_CODENAME="));
    codename.map(str::to_owned).context("/etc/os-release has no VERSION_CODENAME")
}

/// The archive that this machine's apt has for its release.
pub(crate) fn archive(codename: &str) -> anyhow::Result<String> {
    let format = "$(REPO_URI) $(RELEASE) $(COMPONENT)";
    let output = Command::new("apt-get").args(["indextargets", "--format", format, "Identifier: Packages"]).output()?;
    let targets = String::from_utf8_lossy(&output.stdout);
    let main = targets.lines().find_map(|l| l.strip_suffix(&format!(" {codename} main")));
    main.map(str::to_owned).with_context(|| format!("apt of this machine knows no archive with {codename} main"))
}
