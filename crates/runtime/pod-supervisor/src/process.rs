//! `process` of an OCI spec, and how this process becomes it: limits, environment, user, capabilities, program.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, openat2};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccomp_filter::Filter;
use serde::Deserialize;

use crate::capabilities::CAPABILITIES;
use crate::helper::{BEGIN, at, words};

mod find;

use find::find;

/// Bytes of a file with a process, or a spec.
const MAX_SPEC: u64 = 16 << 20;
/// Bytes of a container's `/etc/passwd`.
const MAX_PASSWD: u64 = 1 << 20;

/// `process` of an OCI spec, as far as it can be here. A part that is not known is refused: a later server may think that it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Process {
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) user: User,
    capabilities: Capabilities,
    #[serde(default)]
    rlimits: Vec<Limit>,
    #[serde(default)]
    no_new_privileges: bool,
    pub(crate) oom_score_adj: Option<i32>,
    #[serde(default)]
    pub(crate) terminal: bool,
    /// Of AppArmor, from the start of the program on ([`crate::helper::Own::confine`]).
    pub(crate) apparmor_profile: Option<String>,
    /// Of a command: the file with the filter of its container's seccomp profile. No field of the OCI's, so that a supervisor that knows of none refuses
    /// the command.
    pub(crate) seccomp_filter: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct User {
    pub(crate) uid: u32,
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

/// A file of JSON, whole.
pub(crate) fn read<T: serde::de::DeserializeOwned>(file: impl Read) -> io::Result<T> {
    let mut text = Vec::new();
    file.take(MAX_SPEC).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The filter in a file that the server wrote.
pub(crate) fn read_filter(path: &Path) -> io::Result<Filter> {
    fs::File::open(path).and_then(read).map_err(at(path))
}

/// Becomes it, on these streams and held to a filter, and says so before its program takes over. What is to be done as root, in mounts and elsewhere, is
/// done.
pub(crate) fn become_process(
    process: &Process,
    last_capability: u32,
    streams: [OwnedFd; 3],
    mut told: &UnixStream,
    filter: Option<&Filter>,
) -> io::Result<Infallible> {
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
    // Of a node with `fs.suid_dumpable` another user's process may be looked into again.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    if moved.is_err() {
        change_folder(&process.cwd)?;
    }
    // Who may not gain privileges may load a filter; others have to be able to administer the node until they have.
    let keeps = filter.is_some() && !process.no_new_privileges;
    sets.take(if keeps { CapabilitySet::SYS_ADMIN } else { CapabilitySet::empty() })?;
    let name = process.args.first().map_or("", String::as_str);
    let path = environment.get("PATH").map_or("", String::as_str);
    let program = find(name, path).map_err(|why| io::Error::other(format!("exec: {name:?}: {why}")))?;
    let failed = |e: io::Error| io::Error::other(format!("exec {}: {}", program.display(), words(&e)));
    let call = Call::new(&program, process, &environment).map_err(failed)?;
    let [input, output, error] = streams;
    rustix::stdio::dup2_stdin(input)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(error)?;
    told.write_all(BEGIN.as_bytes())?;
    // Rust's runtime ignores it, and what is ignored stays so.
    sigpipe::reset();
    if let Some(filter) = filter {
        filter.load().map_err(|e| {
            io::Error::other(format!("unable to init seccomp: error loading seccomp filter into kernel: {}", words(&e)))
        })?;
    }
    // The filter has to let these through, as it has to with an OCI runtime: what is left of capabilities, and the program.
    if keeps {
        sets.set(CapabilitySet::empty())?;
    }
    Err(failed(call.make()))
}

/// What `execve` takes. The C library's other calls, and those of Rust above them, give what the kernel takes for no program to `/bin/sh`.
struct Call {
    program: CString,
    args: Vec<CString>,
    environment: Vec<CString>,
}

impl Call {
    fn new(program: &Path, process: &Process, environment: &BTreeMap<String, String>) -> io::Result<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let pairs = environment.iter().map(|(name, value)| text(format!("{name}={value}").as_bytes()));
        Ok(Self {
            program: text(program.as_os_str().as_bytes())?,
            args: process.args.iter().map(|arg| text(arg.as_bytes())).collect::<io::Result<_>>()?,
            environment: pairs.collect::<io::Result<_>>()?,
        })
    }

    fn make(&self) -> io::Error {
        match nix::unistd::execve(&self.program, &self.args, &self.environment) {
            Err(e) => io::Error::from_raw_os_error(e as i32),
            Ok(never) => match never {},
        }
    }
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
    // Nor a link of `/proc`, which may lead out of the container where that sees the node's processes.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat2(CWD, "/etc/passwd", flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    let file = fs::File::from(file);
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
            let bits = numbers.map(|number| number.map(|n| 1_u64 << n)).try_fold(0, |all, bit| bit.map(|b| all | b));
            let bits = bits?;
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

    /// As they are to be; `more` are kept for now.
    fn take(&self, more: CapabilitySet) -> io::Result<()> {
        rustix::thread::clear_ambient_capability_set()?;
        self.set(more)?;
        for number in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if self.ambient.contains(one) {
                rustix::thread::configure_capability_in_ambient_set(one, true)?;
            }
        }
        Ok(())
    }

    fn set(&self, more: CapabilitySet) -> io::Result<()> {
        let (effective, permitted) = (self.effective | more, self.permitted | more);
        let sets = CapabilitySets { effective, permitted, inheritable: self.inheritable };
        Ok(rustix::thread::set_capabilities(None, sets)?)
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
