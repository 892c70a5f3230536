//! Word from the kernel that memory runs short: `/proc/pressure/memory`, and thresholds of cgroup v1.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use futures::stream;
use ports::memory_alarm::{Armed, MemoryAlarm};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::OFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::LinuxCgroups;
use crate::cgroup::{Hierarchy, checked};

/// Some task waited for memory for a tenth of half a second (Documentation/accounting/psi of the kernel). The last byte is
/// not read.
const STALL: &[u8] = b"some 50000 500000\n";
/// As much as is told to who lacks `CAP_SYS_RESOURCE`: every two seconds.
const STALL_UNPRIVILEGED: &[u8] = b"some 100000 2000000\n";

/// What this machine's kernel tells.
#[derive(Clone, Debug)]
pub struct KernelMemoryAlarm {
    pressure: PathBuf,
    /// Where the memory controller of v1 is mounted, if it is.
    memory: Option<PathBuf>,
}

impl KernelMemoryAlarm {
    /// Over the tree of this machine.
    #[must_use]
    pub fn new(cgroups: &LinuxCgroups) -> Self {
        let memory = match cgroups.hierarchy() {
            Hierarchy::V1(mounts) => mounts.get("memory").cloned(),
            Hierarchy::V2(_) => None,
        };
        Self { pressure: "/proc/pressure/memory".into(), memory }
    }
}

impl MemoryAlarm for KernelMemoryAlarm {
    fn stalls(&self) -> io::Result<Armed> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.pressure)?;
        file.write_all(STALL).or_else(|_| file.write_all(STALL_UNPRIVILEGED))?;
        Ok(Box::new(|| {
            let file = registered(file, Interest::PRIORITY)?;
            Ok(stream::try_unfold(file, |file| async {
                // Told once per window: nothing is to be read.
                file.ready(Interest::PRIORITY).await?.clear_ready();
                Ok(Some(((), file)))
            })
            .boxed_local())
        }))
    }

    fn usage_crosses(&self, cgroup: &str, bytes: u64) -> io::Result<Armed> {
        let root = self.memory.as_deref().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let dir = root.join(checked(cgroup).map_err(io::Error::other)?);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let usage = File::open(dir.join("memory.usage_in_bytes"))?;
        order(&dir, &event, &usage, bytes)?;
        Ok(Box::new(|| {
            let event = registered(File::from(event), Interest::READABLE)?;
            Ok(stream::try_unfold((event, usage), |(event, usage)| async {
                loop {
                    let mut ready = event.readable().await?;
                    let mut count = [0; 8];
                    match ready.try_io(|event| event.get_ref().read(&mut count)) {
                        Ok(Ok(_)) => return Ok(Some(((), (event, usage)))),
                        Ok(Err(e)) => return Err(e),
                        // Nothing there yet.
                        Err(_) => {}
                    }
                }
            })
            .boxed_local())
        }))
    }
}

/// Has the kernel write to `event` when the use of the cgroup crosses so many bytes; until `event` is closed.
fn order(dir: &Path, event: &OwnedFd, usage: &File, bytes: u64) -> io::Result<()> {
    let line = format!("{} {} {bytes}", event.as_raw_fd(), usage.as_raw_fd());
    OpenOptions::new().write(true).open(dir.join("cgroup.event_control"))?.write_all(line.as_bytes())
}

#[expect(deprecated, reason = "a File keeps its descriptor open, which is all that the unsafe successor asks for")]
fn registered(file: File, interest: Interest) -> io::Result<AsyncFd<File>> {
    AsyncFd::with_interest(file, interest)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn stalls_are_told_by_this_kernel_or_refused() {
        let alarm = KernelMemoryAlarm { pressure: "/proc/pressure/memory".into(), memory: None };
        let measures = Path::new("/proc/pressure/memory").exists();
        assert_eq!(alarm.stalls().is_ok(), measures);
        let nowhere = KernelMemoryAlarm { pressure: "/proc/pressure/nothing".into(), memory: None };
        assert_eq!(nowhere.stalls().err().expect("not there").kind(), io::ErrorKind::NotFound);
        assert_eq!(nowhere.usage_crosses("/a", 1).err().expect("no v1").kind(), io::ErrorKind::Unsupported);
    }

    /// Removes the cgroup when the test ends, however it ends.
    struct Own(PathBuf);

    impl Drop for Own {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir(&self.0);
        }
    }

    #[tokio::test]
    async fn the_kernel_of_v1_tells_when_a_cgroup_uses_more_than_so_much() {
        let root = Path::new("/sys/fs/cgroup/memory");
        if !root.join("cgroup.event_control").exists() {
            eprintln!("skipped: needs cgroup v1");
            return; // v2: the guest's
        }
        let name = format!("bosun-alarm-{}", std::process::id());
        let own = Own(root.join(&name));
        std::fs::create_dir(&own.0).expect("an own cgroup");
        let alarm = KernelMemoryAlarm { pressure: PathBuf::new(), memory: Some(root.to_owned()) };
        assert!(alarm.usage_crosses("/../etc", 1).is_err());
        assert!(alarm.usage_crosses("/no-such-cgroup-here", 1).is_err());
        let armed = alarm.usage_crosses(&format!("/{name}"), 8 << 20).expect("ordered");
        let mut told = armed().expect("listened to");
        let quiet = tokio::time::timeout(Duration::from_millis(100), told.next()).await;
        assert!(quiet.is_err(), "nothing uses it");
        // 32 MiB of anonymous memory: what `tail` keeps of a stream without a line's end.
        let script = format!(
            "echo $$ > {}/cgroup.procs; head -c 33554432 /dev/zero | tail -c 33554432 | wc -c",
            own.0.display()
        );
        let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().expect("sh runs");
        let told = tokio::time::timeout(Duration::from_secs(30), told.next()).await;
        child.wait().expect("sh ends");
        assert!(matches!(told, Ok(Some(Ok(())))), "{told:?}");
    }

    /// A process that may have 4 MiB and writes files waits for memory all the time, until it was told of. Its own cgroup of v2 tells of it
    /// alone, where there is one beside those of v1.
    #[tokio::test]
    async fn a_process_that_waits_for_memory_is_told_of() {
        let (v1, unified) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup/unified"));
        if !v1.join("memory.limit_in_bytes").exists() || !unified.join("memory.pressure").exists() {
            eprintln!("skipped: needs a kernel that measures stalls, and cgroup v1 beside v2");
            return;
        }
        let name = format!("bosun-stalls-{}", std::process::id());
        let own = [v1, unified].map(|root| Own(root.join(&name)));
        for own in &own {
            std::fs::create_dir(&own.0).expect("an own cgroup");
        }
        std::fs::write(own[0].0.join("memory.limit_in_bytes"), "4M").expect("a limit");
        let alarm = KernelMemoryAlarm { pressure: own[1].0.join("memory.pressure"), memory: None };
        let armed = alarm.stalls().expect("this kernel tells");
        let mut told = armed().expect("listened to");
        let quiet = tokio::time::timeout(Duration::from_millis(700), told.next()).await;
        assert!(quiet.is_err(), "nobody waits");
        let file = std::env::temp_dir().join(&name);
        let [limited, watched] = own.each_ref().map(|own| own.0.join("cgroup.procs"));
        let script = format!(
            "echo $$ > {}; echo $$ > {}; until [ -d {file} ]; do head -c 67108864 /dev/zero > {file}; done",
            limited.display(),
            watched.display(),
            file = file.display()
        );
        let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().expect("sh runs");
        let heard = tokio::time::timeout(Duration::from_secs(30), told.next()).await;
        let still = child.try_wait().expect("a child");
        // `head` is no child of ours, and may be killed where the disk is slow: both end where nothing can be written.
        std::fs::remove_file(&file).and_then(|()| std::fs::create_dir(&file)).expect("no file");
        child.wait().expect("sh ends");
        std::fs::remove_dir(file).expect("the folder");
        assert!(matches!(heard, Ok(Some(Ok(())))), "{heard:?}");
        assert_eq!(still, None, "it wrote all the time");
    }
}
