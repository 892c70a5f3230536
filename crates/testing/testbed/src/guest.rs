//! A machine of its own inside of this one: user-mode-linux, a Linux kernel that is an ordinary process. It has cgroup v2, its own
//! memory, mounts, disk and power switch, whatever the machine around it has.
//!
//! Its disk is a layer over the image that `cargo xtask guest` builds; scripts reach it through a folder that both see. All its
//! processes live in a PID namespace whose first one is the kernel: whoever ends that one, or dies as its owner, ends them all.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bed::tail;
use crate::error::file;
use crate::process::{self, ProcessId};
use crate::{BedError, cleanup, command, wait_until};

mod image;
mod processor;
mod script;

use image::KERNEL;
pub use image::{GUEST_PACKAGES, GuestImage};
pub use processor::unfit_processor;
pub use script::Ran;

/// Memory of a guest is a file that nobody else can open; it must not be on a disk.
const MEMORY_DIR: &str = "/dev/shm";
/// A busy machine needs some 15 s.
const BOOT: Duration = Duration::from_secs(120);
/// What is put into the shared folder before each start.
const FILES: [(&str, &str); 9] = [
    ("init", include_str!("guest/files/init")),
    ("machine", include_str!("guest/files/machine")),
    ("bin/svc", include_str!("guest/files/svc")),
    ("containerd.toml", include_str!("guest/files/containerd.toml")),
    ("pods.conflist", include_str!("guest/files/pods.conflist")),
    ("kubelet.json", include_str!("guest/files/kubelet.json")),
    ("units/guest.target", include_str!("guest/files/units/guest.target")),
    ("units/guest.service", include_str!("guest/files/units/guest.service")),
    // The one that nodes have.
    ("units/bosun.service", include_str!("../../../../config/bosun.service")),
];

/// What a guest writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestDisk {
    /// A layer over the image, gone with the guest.
    Layer,
    /// The image itself, for whoever makes it.
    Image,
}

/// How a guest is made.
#[derive(Debug, Clone)]
pub struct GuestOptions {
    /// The image.
    pub image: GuestImage,
    /// What it writes to.
    pub disk: GuestDisk,
    /// Memory in MiB; taken as it is used.
    pub memory_mib: u32,
    /// A folder with programs of ours; `/programs` in the guest.
    pub programs: PathBuf,
    /// Where its own folder is made.
    pub parent: PathBuf,
    /// Its first console is that of this process: a shell is started on it.
    pub shell: bool,
    /// Its first process becomes Debian's systemd. Ours is another one otherwise, which starts in half the time.
    pub systemd: bool,
    /// Called with one line per step.
    pub say: fn(&str),
}

impl Default for GuestOptions {
    fn default() -> Self {
        let program = std::env::var_os("BOSUN_BIN").map_or_else(|| "/usr/bin/bosun".into(), PathBuf::from);
        GuestOptions {
            image: GuestImage::cached(),
            disk: GuestDisk::Layer,
            memory_mib: 1024,
            programs: program.parent().unwrap_or(Path::new("/")).to_owned(),
            parent: std::env::temp_dir(),
            shell: false,
            systemd: false,
            say: |_| {},
        }
    }
}

/// A guest that runs, or whose power is off. Dropping it removes every trace.
pub struct Guest {
    options: GuestOptions,
    dir: PathBuf,
    /// What waits for the kernel, and the kernel.
    running: Option<(Child, ProcessId)>,
    boots: u32,
    scripts: Cell<u32>,
}

impl Guest {
    /// Starts a guest; it takes scripts when this returns. From now on SIGINT, SIGTERM and SIGHUP remove all guests of this
    /// process before they end it; when it is killed, the guests die with it, and the next start removes their files.
    ///
    /// # Errors
    /// When the machine or the image lacks something, or the guest does not come up; the end of its console is in the error.
    pub fn boot(options: GuestOptions) -> Result<Self, BedError> {
        let problems = missing(&options);
        if !problems.is_empty() {
            let list = problems.iter().map(|p| format!("\n  - {p}")).collect::<String>();
            return Err(BedError::Machine(format!("{list}\n  `cargo xtask guest image` brings what can be brought")));
        }
        cleanup::clean_on_signals();
        cleanup::sweep_guests(&options.parent);
        let dir = options.parent.join(format!("{}{:06x}", cleanup::GUEST_PREFIX, fastrand::u32(..1 << 24)));
        for folder in ["share/q", "share/bin", "share/units"] {
            let path = dir.join(folder);
            file("create", &path, std::fs::create_dir_all(&path))?;
        }
        cleanup::own_guest(&dir)?;
        let mut guest = Guest { options, dir, running: None, boots: 0, scripts: Cell::new(0) };
        guest.power_on()?;
        Ok(guest)
    }

    /// Starts it (again) on the disk that it has.
    ///
    /// # Errors
    /// As [`Self::boot`].
    pub fn power_on(&mut self) -> Result<(), BedError> {
        self.cut()?;
        self.boots += 1;
        (self.options.say)(&format!("guest in {}, start {}", self.dir.display(), self.boots));
        self.share()?;
        let mut start = self.command();
        if !self.options.shell {
            let path = self.console_path();
            let console = file("open", &path, std::fs::OpenOptions::new().create(true).append(true).open(&path))?;
            let errors = file("open", &path, console.try_clone())?;
            start.stdin(Stdio::null()).stdout(console).stderr(errors);
        }
        let started = start.spawn();
        let failed = |e: std::io::Error| BedError::Command { command: command::show(&start), output: e.to_string() };
        let mut waiter = started.map_err(failed)?;
        let kernel = wait_until("the guest's kernel to start", Duration::from_secs(10), || {
            if let Ok(Some(status)) = waiter.try_wait() {
                return Err(format!("it ended with {status}: {}", self.console()));
            }
            process::only_child(waiter.id()).ok_or_else(|| "not yet".to_owned())
        });
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(e) => {
                let _ = waiter.kill();
                let _ = waiter.wait();
                return Err(e);
            }
        };
        self.running = Some((waiter, kernel));
        wait_until("the guest to come up", BOOT, || {
            self.alive()?;
            if self.dir.join("share/up").exists() { Ok(()) } else { Err(self.console()) }
        })
    }

    /// Takes its power away: what its page cache held is lost, what it wrote stays. It can be started again. Nothing happens when
    /// it is off already.
    ///
    /// # Errors
    /// When some process of it does not end.
    pub fn cut(&mut self) -> Result<(), BedError> {
        let Some((mut waiter, kernel)) = self.running.take() else { return Ok(()) };
        // The first process of a PID namespace is gone only when all others are.
        let all = [kernel].into();
        process::kill_all(&all);
        let _ = waiter.kill();
        let _ = waiter.wait();
        let limit = Duration::from_secs(20);
        let left = !process::wait_gone(&all, limit);
        let timeout =
            || BedError::Timeout { what: "the guest's processes to end".into(), limit, detail: format!("{kernel:?}") };
        if left { Err(timeout()) } else { Ok(()) }
    }

    /// The folder that the guest sees as `/share`.
    #[must_use]
    pub fn share_dir(&self) -> PathBuf {
        self.dir.join("share")
    }

    /// The end of what the guest wrote to its console.
    #[must_use]
    pub fn console(&self) -> String {
        tail(&self.console_path(), 25)
    }

    /// Waits until the shell on its console has ended.
    ///
    /// # Errors
    /// When the guest ended before.
    pub fn wait_shell(&self) -> Result<(), BedError> {
        wait_until("the shell to end", Duration::MAX, || {
            self.alive()?;
            if self.dir.join("share/shell-ended").exists() { Ok(()) } else { Err(String::new()) }
        })
    }

    /// # Errors
    /// A text, when it does not run.
    fn alive(&self) -> Result<(), String> {
        match self.running {
            Some((_, kernel)) if kernel.alive() => Ok(()),
            _ => Err(format!("the guest is off\n{}", self.console())),
        }
    }

    fn console_path(&self) -> PathBuf {
        self.dir.join("console")
    }

    /// What the guest reads at its start, and nothing that an earlier one left behind.
    fn share(&self) -> Result<(), BedError> {
        let share = self.share_dir();
        for (name, text) in FILES {
            let path = share.join(name);
            file("write", &path, std::fs::write(&path, text))?;
        }
        for left in ["up", "shell-ended"] {
            let _ = std::fs::remove_file(share.join(left));
        }
        for entry in file("list", &share, std::fs::read_dir(share.join("q")))?.flatten() {
            let path = entry.path();
            file("remove", &path, std::fs::remove_file(&path))?;
        }
        let programs = self.options.programs.display();
        let [shell, systemd] = [self.options.shell, self.options.systemd].map(u8::from);
        let settings = format!("PROGRAMS='{programs}'\nSHELL_WANTED='{shell}'\nSYSTEMD_WANTED='{systemd}'\n");
        let path = share.join("settings");
        file("write", &path, std::fs::write(&path, settings))
    }

    /// The kernel with its command line. Its owner's death is its own, by way of each process between.
    fn command(&self) -> Command {
        let image = self.options.image.path();
        let disk = match self.options.disk {
            GuestDisk::Layer => format!("ubd0={},{}", self.dir.join("disk.cow").display(), image.display()),
            GuestDisk::Image => format!("ubd0={}", image.display()),
        };
        let mut start = Command::new("setpriv");
        start.args([
            "--pdeathsig",
            "KILL",
            "--",
            "unshare",
            "--pid",
            "--kill-child=KILL",
            "--mount-proc",
            "--",
            KERNEL,
        ]);
        // A folder of its own for each start: what the last one left there looks as if it still ran.
        start.arg(format!("uml_dir={}", self.dir.join(format!("uml-{}", self.boots)).display())).arg("umid=guest");
        start.arg(format!("mem={}M", self.options.memory_mib)).arg(disk);
        start.args(["root=/dev/ubda", "rootfstype=ext4", "rw", "init=/guest-init", "quiet", "con=null"]);
        start.arg(if self.options.shell { "con0=fd:0,fd:1" } else { "con0=null,fd:1" });
        start.arg(format!("share={}", self.share_dir().display()));
        start.env("TMPDIR", MEMORY_DIR);
        start
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let off = self.cut();
        if let Err(e) = off.map_err(|e| e.to_string()).and_then(|()| cleanup::remove_guest(&self.dir)) {
            (self.options.say)(&format!("the guest leaves something behind: {e}"));
        }
    }
}

/// What stands in a guest's way.
fn missing(options: &GuestOptions) -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("the guest's namespaces need root (try sudo)".to_owned());
    }
    if !Path::new(KERNEL).is_file() {
        missing.push(format!("{KERNEL} is not there: Debian's package user-mode-linux"));
    }
    missing.extend(unfit_processor().map(str::to_owned));
    let image = &options.image;
    if options.disk == GuestDisk::Layer && !(image.path().is_file() && image.stamp_path().is_file()) {
        missing.push(format!("{} is not there, or not complete", image.path().display()));
    }
    let memory = u64::from(options.memory_mib) * 1024 * 1024;
    match rustix::fs::statvfs(MEMORY_DIR) {
        Ok(s) if s.f_bavail.saturating_mul(s.f_frsize) >= memory => {}
        Ok(_) => missing.push(format!("{MEMORY_DIR} has no room for {} MiB of memory", options.memory_mib)),
        Err(e) => missing.push(format!("{MEMORY_DIR}, where a guest's memory is: {e}")),
    }
    missing
}
