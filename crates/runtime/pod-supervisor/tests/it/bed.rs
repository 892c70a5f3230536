//! A pod in a folder of its own: root file system of busybox, cgroup of its own.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pod_supervisor::wire::{Answer, MAX_ANSWER, MAX_REQUEST, Request, frame, unframe};
use pod_supervisor::{ContainerPlan, NamespacePlan, PLAN, PodPlan, SOCKET, fds, record};
use serde_json::json;

/// Longer than anything here takes on a busy machine, and shorter than the time after which a supervisor looks for strays of itself: what comes only
/// by that has no event.
const PATIENCE: Duration = Duration::from_secs(45);
static NUMBER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Bed {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) plan: PodPlan,
    cgroup: String,
    /// Containers are started by the supervisor itself.
    pub(crate) by_itself: bool,
    child: Option<Child>,
}

/// One connection.
pub(crate) struct Call {
    stream: UnixStream,
    incoming: Vec<u8>,
}

impl Call {
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer().expect("an answer")
    }

    pub(crate) fn try_answer(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = unframe(&mut self.incoming, MAX_ANSWER).map_err(io::Error::other)? {
                return Ok(answer);
            }
            let mut buffer = [0; 4096];
            match fds::receive(&self.stream, &mut buffer, &mut Vec::new())? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.incoming.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

/// Waits until something is so.
pub(crate) fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        rustix::event::poll(&mut [], Some(&pause)).expect("pause");
    }
}

impl Bed {
    pub(crate) fn new(namespaces: NamespacePlan) -> Self {
        let dir = tempfile::tempdir().expect("folder");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let cgroup = format!("/bosun-sup-{}-{number}", std::process::id());
        for folder in ["pod", "state", "oci", "root/bin", "root/proc", "root/sys", "root/dev", "root/etc"] {
            fs::create_dir_all(dir.path().join(folder)).expect("folder");
        }
        let busybox = dir.path().join("root/bin/busybox");
        fs::copy("/bin/busybox", &busybox).expect("busybox-static is installed");
        for name in ["sh", "cat", "echo", "sleep", "hostname", "ip", "head", "tr", "stty"] {
            std::os::unix::fs::symlink("busybox", dir.path().join("root/bin").join(name)).expect("link");
        }
        let plan = PodPlan {
            id: "pod".into(),
            runtime: "/usr/sbin/runc".into(),
            runtime_root: dir.path().join("oci"),
            systemd_cgroup: false,
            state: dir.path().join("state"),
            namespaces,
            cgroup_procs: Vec::new(),
            oom_file: None,
            hierarchies: Vec::new(),
            oom_score_adj: None,
        };
        record::write_record(&dir.path().join("pod").join(PLAN), &plan).expect("plan");
        Self { dir, plan, cgroup, by_itself: false, child: None }
    }

    /// Gives the supervisor, before its start, the cgroup that a server would: where memory is accounted.
    pub(crate) fn give_group(&mut self) -> PathBuf {
        let hierarchies = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
        let hierarchy = hierarchies.into_iter().find(|h| h.join("cgroup.procs").exists()).expect("memory is accounted");
        let group = hierarchy.join(&self.cgroup[1..]);
        fs::create_dir(&group).expect("group");
        self.plan.cgroup_procs = vec![group.join("cgroup.procs")];
        record::write_record(&self.run_dir().join(PLAN), &self.plan).expect("plan");
        group
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir.path().join("pod")
    }

    /// Starts the supervisor as a child.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bosun-pod"));
        command.arg("run").arg(self.run_dir()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("bosun-pod");
        let mut said = [0; pod_supervisor::READY.len()];
        child.stdout.take().expect("piped").read_exact(&mut said).expect("it is ready");
        assert_eq!(said, *pod_supervisor::READY);
        self.child = Some(child);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("started").id()
    }

    /// Its children in PID namespaces of containers that have ended and are not reaped. Others cost no more than their number until something happens.
    pub(crate) fn zombies(&self) -> Vec<String> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
        let all = children.split_whitespace().filter_map(|c| fs::read_to_string(format!("/proc/{c}/status")).ok());
        let has = |status: &str, name: &str, is: fn(&str) -> bool| {
            status.lines().filter_map(|line| line.strip_prefix(name)).any(is)
        };
        let is_within = |status: &str| has(status, "NSpid:", |numbers| numbers.split_whitespace().count() > 1);
        all.filter(|status| has(status, "State:", |state| state.trim().starts_with('Z')) && is_within(status)).collect()
    }

    pub(crate) fn call(&self, request: &Request) -> Call {
        self.call_with(request, &[])
    }

    pub(crate) fn call_with(&self, request: &Request, passed: &[&dyn AsFd]) -> Call {
        let stream = UnixStream::connect(self.run_dir().join(SOCKET)).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        let bytes = frame(request, MAX_REQUEST).expect("short");
        let passed: Vec<_> = passed.iter().map(|fd| fd.as_fd()).collect();
        assert_eq!(fds::send(&stream, &bytes, &passed).expect("sent"), bytes.len());
        Call { stream, incoming: Vec::new() }
    }

    pub(crate) fn ask(&self, request: &Request) -> Answer {
        self.call(request).answer()
    }

    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.dir.path().join(format!("{id}.log"))
    }

    /// Lines of a log without their times.
    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        let text = fs::read_to_string(self.log(id)).expect("log");
        text.lines().map(|l| l.split_once(' ').expect("time").1.to_owned()).collect()
    }

    /// A container that runs `script`.
    pub(crate) fn container(
        &self,
        id: &str,
        script: &str,
        change: impl FnOnce(&mut serde_json::Value),
    ) -> ContainerPlan {
        let bundle = self.dir.path().join(format!("bundle-{id}"));
        fs::create_dir_all(&bundle).expect("bundle");
        fs::create_dir_all(self.dir.path().join("state").join(id)).expect("state");
        let mut spec = self.spec(id, script);
        change(&mut spec);
        fs::write(bundle.join("config.json"), spec.to_string()).expect("spec");
        let memory = Path::new("/sys/fs/cgroup/memory");
        ContainerPlan {
            id: id.into(),
            bundle,
            log: self.log(id),
            stdin: false,
            stdin_once: false,
            tty: spec["process"]["terminal"] == true,
            oom_file: Some(memory.join(&self.cgroup[1..]).join(id).join("memory.oom_control")),
            cgroup: self.by_itself.then(|| format!("{}/{id}", self.cgroup)),
        }
    }

    fn spec(&self, id: &str, script: &str) -> serde_json::Value {
        let n = &self.plan.namespaces;
        let path = |has: bool, name: &str| has.then(|| self.run_dir().join("ns").join(name));
        let mut namespaces = vec![json!({"type": "mount"})];
        for (kind, path) in
            [("network", path(n.network, "net")), ("uts", path(n.uts, "uts")), ("ipc", path(n.ipc, "ipc"))]
        {
            namespaces.extend(path.map(|path| json!({"type": kind, "path": path})));
        }
        namespaces.push(match path(n.pid, "pid") {
            Some(path) => json!({"type": "pid", "path": path}),
            None => json!({"type": "pid"}),
        });
        let held = ["CAP_KILL", "CAP_DAC_OVERRIDE"];
        let held = json!({"bounding": held, "effective": held, "permitted": held});
        json!({
            "ociVersion": "1.0.2",
            "root": {"path": self.dir.path().join("root")},
            "process": {"cwd": "/", "args": ["/bin/sh", "-c", script], "env": ["PATH=/bin"],
                "user": {"uid": 0, "gid": 0}, "capabilities": held},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance"]}
            ],
            "linux": {"cgroupsPath": format!("{}/{id}", self.cgroup), "namespaces": namespaces}
        })
    }

    /// No cgroup, once its container has ended, and nothing of an OCI runtime.
    pub(crate) fn left_nothing(&self) {
        assert!(fs::read_dir(self.dir.path().join("oci")).expect("folder").next().is_none(), "runc was called");
        if self.run_dir().join(SOCKET).exists() {
            let Answer::State { containers } = self.ask(&Request::State) else { panic!("no state") };
            for held in containers.iter().filter(|c| c.exit.is_none()) {
                assert_eq!(self.ask(&Request::Signal { id: held.id.clone(), signal: 9 }), Answer::Done);
            }
        }
        until("cgroups go", || {
            let all = fs::read_dir("/sys/fs/cgroup").expect("hierarchies").flatten();
            let below =
                all.flat_map(|h| fs::read_dir(h.path().join(&self.cgroup[1..])).into_iter().flatten().flatten());
            below.filter(|e| e.path().is_dir()).count().eq(&0).then_some(())
        });
    }

    /// Starts a container and answers its process.
    pub(crate) fn run(&self, plan: ContainerPlan) -> i32 {
        match self.ask(&Request::Run { container: plan }) {
            Answer::Started { pid, .. } => pid,
            other => panic!("{other:?}"),
        }
    }

    /// A file with the process of an exec.
    pub(crate) fn process(&self, args: &[&str], terminal: bool) -> PathBuf {
        let path = self.dir.path().join("process.json");
        let none = json!({"bounding": [], "effective": [], "permitted": []});
        let process = json!({"terminal": terminal, "cwd": "/", "args": args, "env": ["PATH=/bin"],
            "user": {"uid": 0, "gid": 0}, "capabilities": none});
        fs::write(&path, process.to_string()).expect("process");
        path
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let ids: Vec<String> = match self.child {
            Some(_) => fs::read_dir(self.dir.path().join("state"))
                .map(|d| d.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
                .unwrap_or_default(),
            None => Vec::new(),
        };
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for id in ids {
            let _ = Command::new("runc")
                .arg("--root")
                .arg(self.dir.path().join("oci"))
                .args(["delete", "--force", &id])
                .stderr(Stdio::null())
                .status();
        }
        for name in ["net", "ipc", "uts", "user", "pid"] {
            let _ = rustix::mount::unmount(self.run_dir().join("ns").join(name), rustix::mount::UnmountFlags::DETACH);
        }
        for controller in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let _ = fs::remove_dir(controller.path().join(&self.cgroup[1..]));
        }
    }
}
