//! This program, started once more to become something in a container: what it is told, and what it tells.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use keyutils::{Keyring, Permission};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{DumpableBehavior, Pid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fds;
use crate::wire::{frame, unframe};

/// What is told before the number of the process that is about to take over.
pub(crate) const PID: &str = "pid ";
/// What is told when only the program is missing.
pub(crate) const BEGIN: &str = "begin\n";
/// Bytes of an order, and of what it says went wrong.
pub(crate) const MAX_ORDER: usize = 64 << 10;
/// Behind the standard streams.
const FIRST_OPEN: i32 = 3;
/// Who may find a container's session keyring: its own users, as with `runc` (`KEY_USR_SEARCH`).
const SEARCHED: u32 = 0x0008_0000;

/// This program once more, also when its file has been replaced, or is not to be seen.
pub(crate) fn again(verb: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bosun-pod").arg(verb);
    command
}

/// Starts this program once more, with a message and descriptors for it in the socket that is its input. Answers the process and the
/// other end, which does not block.
pub(crate) fn start<T: Serialize>(verb: &str, message: &T, passed: &[BorrowedFd<'_>]) -> io::Result<(Pid, UnixStream)> {
    let message = frame(message, MAX_ORDER).map_err(io::Error::other)?;
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    if fds::send(&ours, &message, passed)? != message.len() {
        return Err(io::Error::other("the order does not fit into a socket"));
    }
    let mut next = again(verb);
    next.env_clear().current_dir("/");
    next.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((Pid::from_child(&next.spawn()?), ours))
}

/// Has this process, which was started so, begin what it is told over its standard input; what goes wrong is told there: `what` failed.
pub(crate) fn begin(what: &str, done: impl FnOnce(&UnixStream) -> io::Result<()>) -> io::Result<()> {
    guard()?;
    let told = told_by()?;
    done(&told).inspect_err(|failed| say_failed(&told, what, failed))
}

/// Nobody looks into this process, and nothing that whoever started the supervisor left open gets into the container.
fn guard() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    hand_nothing_on();
    Ok(())
}

/// What is open here is not open in programs that this process starts, but for what they are given.
pub(crate) fn hand_nothing_on() {
    close_fds::set_fds_cloexec(FIRST_OPEN, &[]);
}

/// Tells why it comes to nothing: `what` failed.
pub(crate) fn say_failed(mut told: &UnixStream, what: &str, failed: &io::Error) {
    // Whoever would read it may be gone.
    let _ = told.write_all(line_of(what, failed).as_bytes());
}

/// One line: names in it may be a container's, and what is in lines of their own is believed ([`PID`]).
fn line_of(what: &str, failed: &io::Error) -> String {
    let words = format!("{what} failed: unable to start container process: {failed}");
    let plain = words.chars().map(|c| if c.is_control() { '?' } else { c });
    // A character takes up to four bytes.
    plain.take(MAX_ORDER / 4).chain(['\n']).collect()
}

/// Splits what was passed into what always is, and the socket that waits for the terminal, if the process is to have one.
pub(crate) fn split<const N: usize>(
    mut passed: Vec<OwnedFd>,
    terminal: bool,
) -> io::Result<([OwnedFd; N], Option<OwnedFd>)> {
    let waits = if terminal { passed.pop() } else { None };
    let passed = passed.try_into().map_err(|_| io::Error::other("a descriptor is missing"))?;
    Ok((passed, waits))
}

/// A message, whole, with its descriptors.
pub(crate) fn receive<T: DeserializeOwned>(socket: &UnixStream) -> io::Result<(T, Vec<OwnedFd>)> {
    let (mut incoming, mut passed, mut buffer) = (Vec::new(), Vec::new(), [0; 4096]);
    loop {
        if let Some(message) = unframe(&mut incoming, MAX_ORDER).map_err(io::Error::other)? {
            return Ok((message, passed));
        }
        match fds::receive(socket, &mut buffer, &mut passed) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => incoming.extend_from_slice(&buffer[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// With the path before an error's words.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |e| io::Error::new(e.kind(), format!("{path}: {e}"))
}

/// An error's words without the number, and small, as Go has them.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let bare = text.split(" (os error").next().unwrap_or_default();
    let mut letters = bare.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The socket that is the standard input of such a process.
fn told_by() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// The last capability that the kernel knows.
pub(crate) fn last_capability() -> io::Result<u32> {
    std::fs::read_to_string("/proc/sys/kernel/cap_last_cap")?.trim().parse().map_err(io::Error::other)
}

/// Joins a container's session keyring, or makes it, with the name that `runc` gives it.
pub(crate) fn join_keyring(id: &str, is_new: bool) -> io::Result<()> {
    let joined = Keyring::join_session(format!("_ses.{id}")).and_then(|mut keyring| match is_new {
        true => {
            let now = keyring.description()?.perms;
            keyring.set_permissions(now | Permission::from_bits_truncate(SEARCHED))
        }
        false => Ok(()),
    });
    match joined {
        // A kernel without keyrings.
        Err(e) if e.0 != rustix::io::Errno::NOSYS.raw_os_error() => {
            Err(io::Error::other(format!("session keyring: {}", io::Error::from_raw_os_error(e.0))))
        }
        _ => Ok(()),
    }
}

/// The top of a new file system, which is mounted nowhere and goes with who has it open.
pub(crate) fn unmounted(kind: &str) -> io::Result<OwnedFd> {
    let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC)?)
}

/// The folder of this process's own descriptors, in a `/proc` that is mounted nowhere, so that no path leads out of it: by names in it, calls that
/// take paths alone reach what a descriptor is of. A process has one of the PID namespace that it is in. And its folder of what security modules
/// know of it.
#[derive(Debug)]
pub(crate) struct Own {
    descriptors: OwnedFd,
    attributes: Option<OwnedFd>,
}

impl Own {
    pub(crate) fn new() -> io::Result<Self> {
        let proc = unmounted("proc")?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A kernel without any has no such folder.
        let attributes = openat(&proc, "self/attr", flags, Mode::empty()).ok();
        Ok(Self { descriptors: openat(&proc, "self/fd", flags, Mode::empty())?, attributes })
    }

    /// Has AppArmor hold this process to a profile from its next program on. As root: its file is not another user's to write.
    pub(crate) fn confine(&self, profile: &str) -> io::Result<()> {
        let failed =
            |e: io::Error| io::Error::other(format!("unable to apply apparmor profile {profile:?}: {}", words(&e)));
        let missing = || failed(io::Error::other("the kernel has no security modules"));
        let attributes = self.attributes.as_ref().ok_or_else(missing)?;
        let open = |name: &str| openat(attributes, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        // Before Linux 5.8 there is one folder for all modules.
        let file = open("apparmor/exec").or_else(|e| if e == Errno::NOENT { open("exec") } else { Err(e) });
        let mut file = File::from(file.map_err(io::Error::from).map_err(failed)?);
        file.write_all(format!("exec {profile}").as_bytes()).map_err(failed)
    }

    /// What it is for is done. Nothing else may be open by which a path leads to the node: the paths of the program, of its interpreter and of its loader are
    /// looked up before what is open is closed (CVE-2024-21626).
    ///
    /// # Errors
    /// A folder is open.
    pub(crate) fn close(self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let list = openat(&self.descriptors, ".", flags, Mode::empty())?;
        let ours =
            [Some(&list), Some(&self.descriptors), self.attributes.as_ref()].map(|fd| fd.map(AsRawFd::as_raw_fd));
        for entry in Dir::new(list)? {
            let entry = entry?;
            let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
            if number.is_none() || ours.contains(&number) {
                continue;
            }
            let facts = statat(&self.descriptors, entry.file_name(), AtFlags::empty())?;
            if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
                let why = format!("descriptor {} is a folder of the node", entry.file_name().to_string_lossy());
                return Err(io::Error::other(why));
            }
        }
        Ok(())
    }

    /// Does something with the name of what a descriptor is of, for as long as the working directory is the one that has it.
    pub(crate) fn with<T>(&self, of: impl AsFd, done: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
        rustix::process::fchdir(&self.descriptors)?;
        let done = done(&of.as_fd().as_raw_fd().to_string());
        // Else what paths lead through this process's own links would be found there.
        rustix::process::chdir("/")?;
        done
    }

    /// Opens what a descriptor is of anew.
    pub(crate) fn reopen(&self, of: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.descriptors, of.as_fd().as_raw_fd().to_string(), flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_one_line_whatever_names_are_in_it() {
        let failed = io::Error::other("exec: \"/x\npid 1234\nbegin\n\": stat /x\npid 1234\r: no such file");
        let line = line_of("exec", &failed);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.starts_with("exec failed: unable") && line.ends_with("no such file\n"), "{line}");
        assert!(line_of("exec", &io::Error::other("ä".repeat(MAX_ORDER))).len() <= MAX_ORDER);
    }
}
