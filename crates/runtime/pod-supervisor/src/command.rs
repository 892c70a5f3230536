//! `bosun-pod exec` and `enter`: a command in a container, as an OCI runtime would make it, which a start of such a program takes several
//! times as long for.
//!
//! Only where nothing is asked for that an OCI runtime has to do: no terminal, no users of the pod's own, no seccomp profile, no label or profile
//! of a security module (`runtime-server` decides that, and the supervisor's [`crate::wire::Request::Exec`] says it). What is left is what `runc exec`
//! does: cgroups, session keyring, namespaces, limits, user, capabilities, program. The supervisor waits for none of it: it starts `exec`, which
//! is a process of the node's until its end, and reaps what becomes of `enter`.
//!
//! Nothing of the container is trusted: its mounts are entered last, and from then on no program is started but the command, no library of it
//! is loaded (`/etc/passwd` is read here, and not by the C library, which would load what `/etc/nsswitch.conf` names), and descriptors
//! that lead out are closed with the start of the command.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, ThreadNameSpaceType};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::capabilities::CAPABILITIES;
use crate::wire::{frame, unframe};
use crate::{fds, hold};

mod find;
mod groups;

use find::{find, words};

/// What is told before the number of the process that is about to become the command.
pub(crate) const PID: &str = "pid ";
/// What is told when only the program is missing.
pub(crate) const BEGIN: &str = "begin\n";
/// Bytes of an order, and of what it says went wrong.
pub(crate) const MAX_ORDER: usize = 64 << 10;
/// Bytes of the file with the process.
const MAX_PROCESS: u64 = 16 << 20;
/// Behind the standard streams.
const FIRST_OPEN: i32 = 3;
/// Bytes of a container's `/etc/passwd`.
const MAX_PASSWD: u64 = 1 << 20;

/// What the supervisor tells; the command's three streams and a descriptor of the container's first process come along.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The container's id.
    pub(crate) id: String,
    /// A file with the `process` of an OCI spec.
    pub(crate) process: PathBuf,
    /// `/proc/PID/cgroup` of the container's first process.
    pub(crate) cgroups: String,
}

/// `process` of an OCI spec, as far as it can be here. A part that is not known is refused: a later server may think that it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Process {
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    cwd: PathBuf,
    user: User,
    capabilities: Capabilities,
    #[serde(default)]
    rlimits: Vec<Limit>,
    #[serde(default)]
    no_new_privileges: bool,
    oom_score_adj: Option<i32>,
    /// Never with one.
    #[serde(default, rename = "terminal")]
    _terminal: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct User {
    uid: u32,
    gid: u32,
    umask: Option<u32>,
    #[serde(default)]
    additional_gids: Vec<u32>,
}

/// Without them, nobody would know what to take away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Capabilities {
    bounding: Vec<String>,
    effective: Vec<String>,
    permitted: Vec<String>,
    #[serde(default)]
    inheritable: Vec<String>,
    #[serde(default)]
    ambient: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    #[serde(rename = "type")]
    kind: String,
    soft: u64,
    hard: u64,
}

/// Begins the command that its standard input, a socket, tells of: what is to be done on the node's side, and all namespaces of the container but
/// the one of mounts. A PID namespace is for children, so another process goes on ([`enter`]); the number of that is told.
///
/// # Errors
/// What it is was told over the socket, in the words of `runc`.
pub fn exec() -> io::Result<()> {
    guard()?;
    let told = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    begin(&told).inspect_err(|failed| say_failed(&told, failed))
}

/// Becomes the command: mounts, user, capabilities, program. Nothing of it is to be said on streams, which may be the command's.
///
/// # Errors
/// What it is was told over the socket of who asked, in the words of `runc`.
pub fn enter() -> io::Result<Infallible> {
    guard()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (last_capability, passed): (u32, _) = receive(&socket)?;
    let [input, output, error, container, process, told] = exactly(passed)?;
    let told = UnixStream::from(told);
    let process = File::from(process);
    let done = become_command(last_capability, &container, process, [input, output, error], &told);
    done.inspect_err(|failed| say_failed(&told, failed))
}

/// Starts this program once more, with a message and descriptors for it in the socket that is its input. Answers the process and the
/// other end, which does not block.
pub(crate) fn start<T: Serialize>(
    verb: &str,
    message: &T,
    passed: &[BorrowedFd<'_>],
) -> io::Result<(Child, UnixStream)> {
    let message = frame(message, MAX_ORDER).map_err(io::Error::other)?;
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    if fds::send(&ours, &message, passed)? != message.len() {
        return Err(io::Error::other("the order does not fit into a socket"));
    }
    let mut next = hold::again(verb);
    next.env_clear().current_dir("/");
    next.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((next.spawn()?, ours))
}

/// Nobody looks into this process, and nothing that whoever started the supervisor left open gets into the container.
fn guard() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    close_fds::set_fds_cloexec(FIRST_OPEN, &[]);
    Ok(())
}

fn say_failed(mut told: &UnixStream, failed: &io::Error) {
    let words = format!("exec failed: unable to start container process: {failed}");
    // Whoever would read it may be gone.
    let _ = told.write_all(&words.as_bytes()[..words.len().min(MAX_ORDER)]);
}

fn exactly<const N: usize>(passed: Vec<OwnedFd>) -> io::Result<[OwnedFd; N]> {
    passed.try_into().map_err(|_| io::Error::other("a descriptor is missing"))
}

/// A message, whole, with its descriptors.
fn receive<T: DeserializeOwned>(socket: &UnixStream) -> io::Result<(T, Vec<OwnedFd>)> {
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

fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |e| io::Error::new(e.kind(), format!("{path}: {e}"))
}

fn read_process(file: impl Read) -> io::Result<Process> {
    let mut text = Vec::new();
    file.take(MAX_PROCESS).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// All that is done on the node's side; what is done here goes over to the second process.
fn begin(mut told: &UnixStream) -> io::Result<()> {
    let (order, passed): (Order, _) = receive(told)?;
    let [input, output, error, container] = exactly(passed)?;
    let open = || File::open(&order.process).map_err(at(&order.process));
    let process = read_process(open()?).map_err(at(&order.process))?;
    let last_capability = fs::read_to_string("/proc/sys/kernel/cap_last_cap")?;
    let last_capability: u32 = last_capability.trim().parse().map_err(io::Error::other)?;
    // First: from here on whoever ends the container ends this, too.
    for file in groups::files(&order.cgroups, &fs::read_to_string("/proc/self/mountinfo")?)? {
        fs::write(&file, "0").map_err(at(&file))?;
    }
    if let Some(score) = process.oom_score_adj {
        fs::write("/proc/self/oom_score_adj", score.to_string())?;
    }
    // As runc names the one that it makes for a container.
    match keyutils::Keyring::join_session(format!("_ses.{}", order.id)) {
        Ok(_) => {}
        // A kernel without keyrings.
        Err(e) if e.0 == rustix::io::Errno::NOSYS.raw_os_error() => {}
        Err(e) => return Err(io::Error::other(format!("session keyring: {}", io::Error::from_raw_os_error(e.0)))),
    }
    let process = open()?;
    let passed = [input.as_fd(), output.as_fd(), error.as_fd(), container.as_fd(), process.as_fd(), told.as_fd()];
    // All but its mounts: this program's file is among those of the node.
    let namespaces = ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::CONTROL_GROUP
        | ThreadNameSpaceType::PROCESS_ID;
    rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)?;
    let pid = start("enter", &last_capability, &passed)?.0.id();
    told.write_all(format!("{PID}{pid}\n").as_bytes())
}

/// The container's side, to the end.
fn become_command(
    last_capability: u32,
    container: &OwnedFd,
    process: File,
    streams: [OwnedFd; 3],
    mut told: &UnixStream,
) -> io::Result<Infallible> {
    rustix::thread::move_into_thread_name_spaces(container.as_fd(), ThreadNameSpaceType::MOUNT)?;
    let process = &read_process(process)?;
    // Whoever started the supervisor may have had it otherwise.
    rustix::process::setsid()?;
    for limit in &process.rlimits {
        let kind = resource(&limit.kind).ok_or_else(|| io::Error::other(format!("no such limit: {}", limit.kind)))?;
        // The kernel's infinity is the largest number, and rustix's is none.
        let value = |n: u64| Some(n).filter(|n| *n != u64::MAX);
        rustix::process::setrlimit(kind, Rlimit { current: value(limit.soft), maximum: value(limit.hard) })?;
    }
    if let Some(umask) = process.user.umask {
        rustix::process::umask(Mode::from_bits_truncate(umask));
    }
    let environment = environment(process);
    give(&streams, process.user.uid)?;
    if process.no_new_privileges {
        rustix::thread::set_no_new_privs(true)?;
    }
    let sets = Sets::of(&process.capabilities)?;
    for number in 0..=last_capability {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !sets.bounding.contains(one) {
            rustix::thread::remove_capability_from_bounding_set(one)?;
        }
    }
    // Before the user is: root may go where that one may not, but for what a server of files keeps from root.
    let moved = change_folder(&process.cwd);
    rustix::thread::set_keep_capabilities(true)?;
    become_user(&process.user)?;
    rustix::thread::set_keep_capabilities(false)?;
    if moved.is_err() {
        change_folder(&process.cwd)?;
    }
    sets.take()?;
    let name = process.args.first().map_or("", String::as_str);
    let path = environment.get("PATH").map_or("", String::as_str);
    let program = find(name, path).map_err(|why| io::Error::other(format!("exec: {name:?}: {why}")))?;
    let mut command = Command::new(&program);
    command.arg0(name).args(&process.args[1..]).env_clear().envs(&environment);
    let [input, output, error] = streams;
    command.stdin(input).stdout(output).stderr(error);
    told.write_all(BEGIN.as_bytes())?;
    Err(io::Error::other(format!("exec {}: {}", program.display(), words(&command.exec()))))
}

/// Of a name that stands twice the last counts. `HOME`, where nobody names it, is the user's, or `/`.
fn environment(process: &Process) -> BTreeMap<String, String> {
    let pairs = process.env.iter().filter_map(|pair| pair.split_once('='));
    let mut all: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if all.get("HOME").is_none_or(String::is_empty) {
        let home = passwd().ok().and_then(|text| home(&text, process.user.uid));
        all.insert("HOME".to_owned(), home.unwrap_or_else(|| "/".to_owned()));
    }
    all
}

/// The container's `/etc/passwd`; a pipe in its place must not hold us up.
fn passwd() -> io::Result<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open("/etc/passwd")?;
    let mut text = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MAX_PASSWD).read_to_end(&mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn home(passwd: &str, uid: u32) -> Option<String> {
    let of = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(uid)).then_some(())?;
        fields.get(5).filter(|home| !home.is_empty()).map(|home| (*home).to_owned())
    };
    passwd.lines().find_map(of)
}

/// The command's streams are its user's, who may open them by their names again; devices and files are somebody's already.
fn give(streams: &[OwnedFd; 3], uid: u32) -> io::Result<()> {
    for stream in streams {
        let facts = rustix::fs::fstat(stream)?;
        let kind = FileType::from_raw_mode(facts.st_mode);
        if facts.st_uid == uid || !matches!(kind, FileType::Fifo | FileType::Socket) {
            continue;
        }
        match rustix::fs::fchown(stream, Some(Uid::from_raw(uid)), None) {
            // What it is may have no owner, or another one for good.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Into a folder of the container, and not one that only the node has (CVE-2024-21626).
fn change_folder(cwd: &Path) -> io::Result<()> {
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("chdir to cwd ({:?}): {}", cwd, words(&e)));
    rustix::process::chdir(cwd).map_err(io::Error::from).map_err(failed)?;
    let now = std::env::current_dir().map_err(failed)?;
    if !now.is_absolute() || now.starts_with("(unreachable)") {
        return Err(io::Error::other("current working directory is outside of container mount namespace root"));
    }
    Ok(())
}

fn become_user(user: &User) -> io::Result<()> {
    let groups: Vec<Gid> = user.additional_gids.iter().map(|g| Gid::from_raw(*g)).collect();
    rustix::thread::set_thread_groups(&groups)?;
    let (gid, uid) = (Gid::from_raw(user.gid), Uid::from_raw(user.uid));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// What a process may do.
#[derive(Debug, PartialEq)]
struct Sets {
    bounding: CapabilitySet,
    effective: CapabilitySet,
    permitted: CapabilitySet,
    inheritable: CapabilitySet,
    ambient: CapabilitySet,
}

impl Sets {
    fn of(named: &Capabilities) -> io::Result<Self> {
        let set = |names: &[String]| {
            let numbers = names.iter().map(|name| {
                let number = CAPABILITIES.iter().position(|c| name.strip_prefix("CAP_") == Some(*c));
                number.ok_or_else(|| io::Error::other(format!("no such capability: {name}")))
            });
            let bits = numbers.map(|number| number.map(|n| 1_u64 << n)).sum::<io::Result<u64>>()?;
            Ok::<_, io::Error>(CapabilitySet::from_bits_retain(bits))
        };
        Ok(Self {
            bounding: set(&named.bounding)?,
            effective: set(&named.effective)?,
            permitted: set(&named.permitted)?,
            inheritable: set(&named.inheritable)?,
            ambient: set(&named.ambient)?,
        })
    }

    fn take(&self) -> io::Result<()> {
        let Self { effective, permitted, inheritable, .. } = *self;
        rustix::thread::clear_ambient_capability_set()?;
        rustix::thread::set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?;
        for number in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if self.ambient.contains(one) {
                rustix::thread::configure_capability_in_ambient_set(one, true)?;
            }
        }
        Ok(())
    }
}

fn resource(name: &str) -> Option<Resource> {
    Some(match name.strip_prefix("RLIMIT_")? {
        "AS" => Resource::As,
        "CORE" => Resource::Core,
        "CPU" => Resource::Cpu,
        "DATA" => Resource::Data,
        "FSIZE" => Resource::Fsize,
        "LOCKS" => Resource::Locks,
        "MEMLOCK" => Resource::Memlock,
        "MSGQUEUE" => Resource::Msgqueue,
        "NICE" => Resource::Nice,
        "NOFILE" => Resource::Nofile,
        "NPROC" => Resource::Nproc,
        "RSS" => Resource::Rss,
        "RTPRIO" => Resource::Rtprio,
        "RTTIME" => Resource::Rttime,
        "SIGPENDING" => Resource::Sigpending,
        "STACK" => Resource::Stack,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(text: &str) -> serde_json::Result<Process> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_process_without_capabilities_is_none_that_could_be_confined() {
        let some = r#""args": ["a"], "cwd": "/", "user": {"uid": 0, "gid": 0}"#;
        assert!(process(&format!("{{{some}}}")).unwrap_err().to_string().contains("capabilities"));
        let none = format!(r#"{{{some}, "capabilities": {{"bounding": [], "effective": [], "permitted": []}}}}"#);
        let sets = Sets::of(&process(&none).expect("complete").capabilities).expect("known");
        assert_eq!(sets.bounding | sets.effective | sets.permitted | sets.ambient, CapabilitySet::empty());
    }

    #[test]
    fn capabilities_are_bits_by_their_names() {
        let named = |names: &[&str]| Capabilities {
            bounding: names.iter().map(|n| (*n).to_owned()).collect(),
            effective: Vec::new(),
            permitted: Vec::new(),
            inheritable: Vec::new(),
            ambient: Vec::new(),
        };
        let sets = Sets::of(&named(&["CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_CHECKPOINT_RESTORE"])).expect("known");
        assert_eq!(sets.bounding.bits(), 1 | 1 << 21 | 1 << 40);
        for (name, set) in [("CAP_NET_RAW", CapabilitySet::NET_RAW), ("CAP_SETFCAP", CapabilitySet::SETFCAP)] {
            assert_eq!(Sets::of(&named(&[name])).expect("known").bounding, set);
        }
        assert!(Sets::of(&named(&["CAP_FLY"])).unwrap_err().to_string().contains("CAP_FLY"));
        assert!(Sets::of(&named(&["CHOWN"])).is_err());
    }

    #[test]
    fn the_home_of_a_user_is_what_the_containers_file_says() {
        let file = "root:x:0:0::/root:/bin/sh\nbroken\nweb:x:1000:1001::/srv:/bin/sh\nlost:x:7:7:::/bin/sh\n";
        assert_eq!(home(file, 0).as_deref(), Some("/root"));
        assert_eq!(home(file, 1000).as_deref(), Some("/srv"));
        assert_eq!((home(file, 7), home(file, 8), home("", 0)), (None, None, None));
    }

    #[test]
    fn limits_have_the_names_of_setrlimit() {
        assert!(resource("RLIMIT_NOFILE").is_some() && resource("RLIMIT_STACK").is_some());
        assert!(resource("NOFILE").is_none() && resource("RLIMIT_FLY").is_none());
    }
}
