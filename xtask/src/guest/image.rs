//! The disk image of guests: Debian's packages by debootstrap, the kernel's modules, container images that are imported already.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use testbed::{GUEST_PACKAGES, Guest, GuestDisk, GuestImage, GuestOptions, Image, PAUSE_IMAGE, REQUIRED};

use crate::{setup, workspace};

/// Counts up with whatever makes another image of the same packages.
const FORMAT: u32 = 2;
/// Beside those of a bed, so that one can be made in there, too.
const PACKAGES: [&str; 15] = [
    "kmod",
    "udev",
    "procps",
    "curl",
    "ca-certificates",
    "dmsetup",
    "e2fsprogs",
    "xfsprogs",
    "quota",
    "nfs-kernel-server",
    "nfs-common",
    "open-iscsi",
    "strace",
    // The first process of guests that want it; of others its login manager alone.
    "systemd",
    "dbus",
];
/// Sparse.
const SIZE: &str = "4G";
/// The rest of the first process comes through the shared folder, so that it can change without another image.
const INIT: &str = r#"#!/bin/bash
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do case $word in share=*) share=${word#share=} ;; esac; done
mount -t hostfs -o "$share" none /share
exec /bin/bash /share/init
"#;

/// Builds the image if it is not there, or was made of something else. Says each step.
pub(crate) fn bring(again: bool) -> anyhow::Result<()> {
    let image = GuestImage::cached();
    install()?;
    let (codename, made_of) = made_of()?;
    if !again && image.is_made_of(&made_of) {
        eprintln!("  have     {}", image.path().display());
        return Ok(());
    }
    let begin = Instant::now();
    let fresh = image.dir().with_file_name("guest-build");
    remove(&fresh)?;
    std::fs::create_dir_all(fresh.join("root")).with_context(|| fresh.display().to_string())?;
    root(&fresh.join("root"), &codename)?;
    disk(&fresh)?;
    import(&fresh)?;
    std::fs::write(GuestImage::at(&fresh).stamp_path(), made_of)?;
    remove(image.dir())?;
    std::fs::rename(&fresh, image.dir())?;
    eprintln!("  built    {} in {:.0} s", image.path().display(), begin.elapsed().as_secs_f64());
    Ok(())
}

fn remove(dir: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).with_context(|| dir.display().to_string()),
        _ => Ok(()),
    }
}

fn install() -> anyhow::Result<()> {
    let missing = GUEST_PACKAGES.iter().filter(|r| !Path::new(r.proof).exists());
    let missing: Vec<&str> = missing.map(|r| r.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    setup::install(&missing).context("a guest needs these packages")
}

/// Codename of the machine's Debian, which the guest shares so that programs built here run there; and all that the image is
/// made of.
fn made_of() -> anyhow::Result<(String, String)> {
    let codename = setup::codename()?;
    let kernel = output("dpkg-query", &["--show", "--showformat=${Version}", "user-mode-linux"])?;
    let made_of = format!("{FORMAT} {codename} {kernel} {}", packages());
    Ok((codename, made_of))
}

/// Separated by commas.
fn packages() -> String {
    let of_beds = REQUIRED.iter().map(|r| r.package);
    of_beds.chain(PACKAGES).collect::<Vec<_>>().join(",")
}

fn root(root: &Path, codename: &str) -> anyhow::Result<()> {
    let target = root.to_string_lossy().into_owned();
    let mirror = setup::archive(codename)?;
    eprintln!("  step     debootstrap {codename} (about a minute)");
    let include = format!("--include={}", packages());
    quiet("debootstrap", &["--foreign", "--variant=minbase", &include, codename, &target, &mirror])?;
    // Debian's own way to forbid that packages start what they bring.
    script(&root.join("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n")?;
    quiet("chroot", &[&target, "/debootstrap/debootstrap", "--second-stage"])?;
    for program in ["iptables", "ip6tables"] {
        // The kernel has no nftables for IPv4.
        let legacy = format!("/usr/sbin/{program}-legacy");
        quiet("chroot", &[&target, "update-alternatives", "--set", program, &legacy])?;
    }
    let modules = root.join("usr/lib/modules");
    std::fs::create_dir_all(&modules)?;
    quiet("cp", &["-a", "/usr/lib/uml/modules/.", &modules.to_string_lossy()])?;
    script(&root.join("guest-init"), INIT)?;
    for folder in ["share", "programs", "images"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    std::fs::write(root.join("etc/hostname"), "guest\n")?;
    std::fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n10.77.0.1 guest\n")?;
    std::fs::write(root.join("etc/resolv.conf"), "nameserver 127.0.0.1\n")?;
    remove(&root.join("var/cache/apt/archives"))?;
    archives(&root.join("images"))
}

fn archives(dir: &Path) -> anyhow::Result<()> {
    eprintln!("  step     container images from local parts");
    Image::pause(PAUSE_IMAGE, dir)?.write_archive(dir)?;
    Image::of_pods()?.iter().try_for_each(|image| image.write_archive(dir).map(drop))?;
    Ok(())
}

fn disk(fresh: &Path) -> anyhow::Result<()> {
    eprintln!("  step     the disk");
    let (disk, root) = (GuestImage::at(fresh).path(), fresh.join("root"));
    let (disk, tree) = (disk.to_string_lossy(), root.to_string_lossy());
    quiet("truncate", &["--size", SIZE, &disk])?;
    quiet("mkfs.ext4", &["-q", "-F", "-L", "guest", "-E", "lazy_itable_init=1,nodiscard", "-d", &tree, &disk])?;
    remove(&root)
}

/// Starts the guest once on the image itself, so that later ones have the container images already.
fn import(fresh: &Path) -> anyhow::Result<()> {
    eprintln!("  step     its first start");
    let options = GuestOptions {
        image: GuestImage::at(fresh),
        disk: GuestDisk::Image,
        programs: fresh.to_owned(),
        ..GuestOptions::default()
    };
    let guest = Guest::boot(options)?;
    guest.sh(
        "set -e; svc containerd; until ctr version > /dev/null 2>&1; do sleep 0.2; done
         for image in /images/*.tar; do ctr -n k8s.io images import $image; done
         svc kill containerd; rm -r /images /var/log/containerd.log; sync; echo u > /proc/sysrq-trigger || mount -o remount,ro /; sync",
    )?;
    Ok(())
}

fn script(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Runs a program that talks only when it fails.
fn quiet(program: &str, args: &[&str]) -> anyhow::Result<()> {
    output(program, args).map(drop)
}

fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(workspace::root()).env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        let last: Vec<&str> = said.lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!("`{program} {}` ended with {}:\n{}", args.join(" "), output.status, last.join("\n"));
    }
    Ok(printed)
}
