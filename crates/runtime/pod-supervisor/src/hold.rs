//! Makes the namespaces of a pod, which are then held by mounts: in the supervisor itself, which goes back afterwards, or, where that
//! cannot be, in a process that ends when it is done.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::{UnshareFlags, move_into_link_name_space};

use crate::helper::again;
use crate::record::{IdRange, NamespacePlan, PodPlan, read_record};
use crate::{NAMESPACE_FILES, NAMESPACES, PLAN, loopback};

/// What the two sides of the pipes tell each other: "done, go on".
const STEP: u8 = b'.';

fn go_on(mut to: impl Write) -> io::Result<()> {
    to.write_all(&[STEP])?;
    to.flush()
}

fn wait_for(mut from: impl Read) -> io::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte).map_err(|_| io::Error::other("the other side has ended: see its words above"))
}

/// `bosun-pod hold FOLDER`: makes the namespaces of the plan around itself, says so, and keeps them until its input ends.
///
/// # Errors
/// The kernel refuses one of them.
pub fn hold(dir: &Path) -> io::Result<()> {
    let plan: PodPlan = read_record(&dir.join(PLAN))?;
    let plan = plan.namespaces;
    if plan.users() {
        leave(UnshareFlags::NEWUSER)?;
        go_on(io::stdout())?; // the parent now writes the mappings,
        wait_for(io::stdin())?; // and has written them
    }
    enter(&plan)?;
    if plan.pid {
        start_init(dir)?;
    }
    go_on(io::stdout())?;
    // Ends when the parent has made its mounts, or died.
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Leaves the namespaces that the plan has anew (but users) for new ones, and makes these as the plan wants them.
fn enter(plan: &NamespacePlan) -> io::Result<()> {
    let wanted = [
        (plan.network, UnshareFlags::NEWNET),
        (plan.ipc, UnshareFlags::NEWIPC),
        (plan.uts, UnshareFlags::NEWUTS),
        (plan.pid, UnshareFlags::NEWPID),
    ];
    let flags = wanted.into_iter().filter(|(want, _)| *want).fold(UnshareFlags::empty(), |all, (_, flag)| all | flag);
    leave(flags)?;
    if plan.network {
        loopback::up()?;
    }
    if plan.uts && !plan.hostname.is_empty() {
        rustix::system::sethostname(plan.hostname.as_bytes())?;
    }
    for (name, value) in &plan.sysctls {
        let file = Path::new("/proc/sys").join(sysctl_path(name)?);
        fs::write(&file, value).map_err(|e| io::Error::new(e.kind(), format!("sysctl {name}: {e}")))?;
    }
    Ok(())
}

/// `net.ipv4.ip_forward` to `net/ipv4/ip_forward`. A name with slashes has dots in its parts (sysctl(8)).
fn sysctl_path(name: &str) -> io::Result<String> {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    if path.starts_with('/') || path.split('/').any(|part| part.is_empty() || part == "..") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no sysctl")));
    }
    Ok(path)
}

/// rustix deprecates its safe call, as leaving a shared table of files is unsound; that flag is never among ours, and this
/// process has one thread.
#[allow(deprecated)]
pub(crate) fn leave(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Process 1 of the PID namespace: the first child after it was made. It must outlive this process.
fn start_init(dir: &Path) -> io::Result<()> {
    let mut init = again("init");
    init.arg(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    init.current_dir("/").spawn().map(drop)
}

/// `bosun-pod init FOLDER` (the folder is for whoever looks at the list of processes): process 1 of a PID namespace that containers share. Reaps, and ends when it is killed, with all others.
///
/// # Errors
/// None that are known.
pub fn init() -> io::Result<()> {
    let (never, _keep) = rustix::pipe::pipe()?;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) => {}
            // No child yet: look again when somebody may have become one. There is no event for that which a process without
            // signal handlers can wait for, and an unreaped orphan costs nothing but its number.
            Err(rustix::io::Errno::CHILD) => {
                let mut quiet = [rustix::event::PollFd::new(&never, rustix::event::PollFlags::IN)];
                let minute = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
                rustix::event::poll(&mut quiet, Some(&minute))?;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Makes the namespaces of a plan and holds each by a mount in `dir/ns`. Answers the number of process 1 of the PID namespace.
///
/// # Errors
/// The kernel refuses; what was mounted is unmounted.
pub(crate) fn make_namespaces(dir: &Path, plan: &NamespacePlan) -> io::Result<Option<Pid>> {
    if plan.users() || plan.pid {
        return by_another(dir, plan);
    }
    let made = by_ourselves(dir, plan);
    if made.is_err() {
        release(dir);
    }
    made.map(|()| None)
}

/// There and back: the calling process has one thread, and such namespaces can be left again.
fn by_ourselves(dir: &Path, plan: &NamespacePlan) -> io::Result<()> {
    let before = ["net", "ipc", "uts"].map(|name| File::open(format!("/proc/self/ns/{name}")));
    let made = enter(plan).and_then(|()| mount_all(dir, plan, "self"));
    for namespace in before {
        move_into_link_name_space(namespace?.as_fd(), None)?;
    }
    made
}

/// By a process that others may join or that ends in it: users are mapped from outside, and process 1 has to be a child.
fn by_another(dir: &Path, plan: &NamespacePlan) -> io::Result<Option<Pid>> {
    let mut command = again("hold");
    command.arg(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let made = pin(dir, plan, &mut child);
    if made.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
        release(dir);
    }
    drop(child.stdin.take());
    child.wait()?;
    made
}

fn pin(dir: &Path, plan: &NamespacePlan, child: &mut Child) -> io::Result<Option<Pid>> {
    let missing = || io::Error::other("no pipe");
    let mut output = child.stdout.take().ok_or_else(missing)?;
    let pid = child.id();
    if plan.users() {
        wait_for(&mut output)?;
        fs::write(format!("/proc/{pid}/uid_map"), map(&plan.uids))?;
        fs::write(format!("/proc/{pid}/gid_map"), map(&plan.gids))?;
        let input: &mut ChildStdin = child.stdin.as_mut().ok_or_else(missing)?;
        go_on(input)?;
    }
    wait_for(&mut output)?;
    mount_all(dir, plan, &pid.to_string())?;
    if !plan.pid {
        return Ok(None);
    }
    first_child(Pid::from_child(child)).map(Some)
}

/// Mounts the namespaces of a process.
fn mount_all(dir: &Path, plan: &NamespacePlan, pid: &str) -> io::Result<()> {
    let folder = dir.join(NAMESPACES);
    fs::create_dir_all(&folder)?;
    let all = [
        (plan.network, "net", "net"),
        (plan.ipc, "ipc", "ipc"),
        (plan.uts, "uts", "uts"),
        (plan.users(), "user", "user"),
        (plan.pid, "pid_for_children", "pid"),
    ];
    for (_, link, name) in all.into_iter().filter(|(want, _, _)| *want) {
        let to = folder.join(name);
        File::create(&to)?;
        mount_bind(format!("/proc/{pid}/ns/{link}"), &to)?;
    }
    Ok(())
}

/// Lines of `uid_map`.
fn map(ranges: &[IdRange]) -> String {
    ranges.iter().map(|r| format!("{} {} {}\n", r.container_id, r.host_id, r.length)).collect()
}

/// The first child of a process.
pub(crate) fn first_child(pid: Pid) -> io::Result<Pid> {
    let pid = pid.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let first = children.split_whitespace().next().and_then(|c| c.parse().ok()).and_then(Pid::from_raw);
    first.ok_or_else(|| io::Error::other(format!("process {pid} has no child")))
}

/// Undoes the mounts in `dir/ns`, as far as they are there.
pub(crate) fn release(dir: &Path) {
    for name in NAMESPACE_FILES {
        let _ = unmount(dir.join(NAMESPACES).join(name), UnmountFlags::DETACH);
    }
}

/// Ends process 1 of a PID namespace, and with it all of it.
pub(crate) fn end_init(pid: Pid) -> io::Result<()> {
    match rustix::process::kill_process(pid, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::sysctl_path;

    #[test]
    fn sysctl_names_are_paths_below_proc_sys() {
        for (name, path) in [
            ("net.ipv4.ip_forward", Some("net/ipv4/ip_forward")),
            ("net/ipv4/conf/eth0.1/forwarding", Some("net/ipv4/conf/eth0.1/forwarding")),
            ("../kernel/core_pattern", None),
            ("/etc/passwd", None),
            ("kernel..x", None),
        ] {
            assert_eq!(sysctl_path(name).ok().as_deref(), path, "{name}");
        }
    }
}
