//! A server in a process of its own, which may be killed, and a client of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cri_api::v1;
use host_linux::LinuxCgroups;
use ports::host::CgroupFs;
use runtime_server::cri::image_service_client::ImageServiceClient;
use runtime_server::cri::runtime_service_client::RuntimeServiceClient;
use tonic::transport::{Channel, Endpoint};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
static NUMBER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Bed {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) cgroup: String,
    server: Option<Child>,
}

/// A program beside this test's own.
fn program(name: &str, how: &str) -> PathBuf {
    let me = std::env::current_exe().expect("this program");
    let program = me.parent().and_then(Path::parent).expect("target folder").join(name);
    assert!(program.exists(), "{}: build it first (`{how}`)", program.display());
    program
}

/// Waits until something is so.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut check: impl FnMut() -> F) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        rustix::event::poll(&mut [], Some(&pause)).expect("pause");
    }
}

impl Bed {
    /// A bed whose server runs, with an image `box` of busybox.
    pub(crate) fn new() -> Self {
        let mut bed = Self::without_server();
        bed.start();
        bed
    }

    /// A bed whose server runs in a network namespace of its own, with a bridge for pods.
    pub(crate) fn with_bridge() -> Self {
        assert!(Path::new("/usr/lib/cni/bridge").exists(), "install containernetworking-plugins");
        let mut bed = Self::without_server();
        let ipam =
            serde_json::json!({"type": "host-local", "subnet": "10.98.0.0/24", "dataDir": bed.dir.path().join("ipam")});
        let bridge = serde_json::json!({"type": "bridge", "bridge": "tst0", "isGateway": true, "ipam": ipam});
        let list = serde_json::json!({"cniVersion": "1.0.0", "name": "net", "plugins": [bridge]});
        fs::create_dir(bed.dir.path().join("net.d")).expect("folder");
        fs::write(bed.dir.path().join("net.d/10-net.conflist"), list.to_string()).expect("configuration");
        bed.start();
        bed
    }

    /// A bed whose server knows two more OCI runtimes: `other`, which is called `runc`, and `strange`. Both are `runc` by a script that notes what
    /// it is called with ([`Self::calls`]).
    pub(crate) fn with_noting_runc() -> Self {
        let mut bed = Self::without_server();
        let calls = bed.dir.path().join("calls");
        let mut config = String::new();
        for (handler, name) in [("other", "runc"), ("strange", "strange")] {
            let program = bed.dir.path().join(handler).join(name);
            fs::create_dir(bed.dir.path().join(handler)).expect("folder");
            fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\nexec /usr/sbin/runc \"$@\"\n", calls.display()))
                .expect("program");
            fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
            config += &format!("[handlers.{handler}]\nprogram = \"{}\"\n", program.display());
        }
        fs::write(bed.dir.path().join("runtime.toml"), config).expect("configuration");
        bed.start();
        bed
    }

    /// What those two were called with.
    pub(crate) fn calls(&self) -> String {
        fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default()
    }

    /// A bed whose server is to be started.
    pub(crate) fn without_server() -> Self {
        let dir = tempfile::tempdir().expect("folder");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = dir.path().join("images/box/rootfs");
        for folder in ["bin", "etc", "proc", "sys", "dev", "tmp"] {
            fs::create_dir_all(root.join(folder)).expect("folder");
        }
        fs::copy("/bin/busybox", root.join("bin/busybox")).expect("busybox-static is installed");
        for name in [
            "sh", "cat", "echo", "sleep", "hostname", "id", "ip", "ls", "touch", "wc", "readlink", "yes", "head",
            "stty", "nc",
        ] {
            std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).expect("link");
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:1000:1001::/:/bin/sh\n").expect("passwd");
        fs::write(root.join("etc/group"), "root:x:0:\nlogs:x:50:web\n").expect("group");
        let cgroup = format!("/bosun-rt-{}-{number}", std::process::id());
        Self { dir, cgroup, server: None }
    }

    /// Starts the server, and waits until it answers.
    pub(crate) fn start(&mut self) {
        let me = program("examples/serve", "cargo build -p runtime-server --example serve");
        let supervisor = program("bosun-pod", "cargo build -p pod-supervisor");
        let mut server = match self.dir.path().join("net.d").exists() {
            false => Command::new(me),
            true => {
                let mut unshare = Command::new("unshare");
                // The loopback is for the server's streams.
                unshare.args(["--net", "sh", "-c", "busybox ip link set lo up && exec \"$@\"", "sh"]).arg(me);
                unshare
            }
        };
        let mut server = server
            .args([self.dir.path(), &supervisor])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server");
        let out = BufReader::new(server.stdout.take().expect("piped"));
        assert!(out.lines().map_while(Result::ok).any(|l| l == "serving"), "the server did not start");
        self.server = Some(server);
    }

    /// What a second server says that is started beside the first one.
    pub(crate) fn second(&self) -> String {
        let supervisor = program("bosun-pod", "cargo build -p pod-supervisor");
        let me = program("examples/serve", "cargo build -p runtime-server --example serve");
        let out = Command::new(me).args([self.dir.path(), &supervisor]).output().expect("a second server");
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    }

    /// SIGTERM, and how long the server took to end.
    pub(crate) fn end(&mut self) -> Duration {
        let mut server = self.server.take().expect("it runs");
        let pid = i32::try_from(server.id()).ok().and_then(rustix::process::Pid::from_raw).expect("number");
        let since = Instant::now();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        assert!(server.wait().expect("wait").success());
        since.elapsed()
    }

    /// The supervisor of a pod.
    pub(crate) fn supervisor_of(&self, pod: &str) -> rustix::process::Pid {
        let mine = self.supervisors().into_iter().find(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words)
                .contains(&format!("run\0{}", self.dir.path().join("run").join(pod).display()))
        });
        mine.and_then(rustix::process::Pid::from_raw).expect("a supervisor")
    }

    /// The network namespace of the server.
    pub(crate) fn network(&self) -> PathBuf {
        let server = self.server.as_ref().expect("it runs");
        format!("/proc/{}/ns/net", server.id()).into()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.kill().expect("kill");
        server.wait().expect("wait");
    }

    pub(crate) async fn client(&self) -> RuntimeServiceClient<Channel> {
        RuntimeServiceClient::new(self.channel().await).max_decoding_message_size(32 << 20)
    }

    pub(crate) async fn images(&self) -> ImageServiceClient<Channel> {
        ImageServiceClient::new(self.channel().await)
    }

    async fn channel(&self) -> Channel {
        let socket = format!("unix://{}", self.dir.path().join("cri.sock").display());
        Endpoint::from_shared(socket).expect("endpoint").connect().await.expect("connect")
    }

    pub(crate) fn pod(&self, name: &str) -> v1::PodSandboxConfig {
        let options = v1::NamespaceOption {
            network: v1::NamespaceMode::Node.into(),
            pid: v1::NamespaceMode::Container.into(),
            ..Default::default()
        };
        v1::PodSandboxConfig {
            metadata: Some(v1::PodSandboxMetadata {
                name: name.into(),
                uid: format!("uid-{name}"),
                namespace: "default".into(),
                attempt: 0,
            }),
            log_directory: self.logs(name).to_string_lossy().into_owned(),
            labels: [("app".to_owned(), name.to_owned())].into(),
            linux: Some(v1::LinuxPodSandboxConfig {
                cgroup_parent: self.cgroup.clone(),
                security_context: Some(v1::LinuxSandboxSecurityContext {
                    namespace_options: Some(options),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    pub(crate) fn logs(&self, pod: &str) -> PathBuf {
        self.dir.path().join("logs").join(pod)
    }

    /// Lines of a log without their times.
    pub(crate) fn lines(&self, pod: &str, container: &str) -> Vec<String> {
        let text = fs::read_to_string(self.logs(pod).join(container)).unwrap_or_default();
        text.lines().map(|l| l.split_once(' ').expect("time").1.to_owned()).collect()
    }

    /// What is left of pods: folders, mounts, cgroups, processes.
    pub(crate) fn remains(&self) -> Vec<String> {
        let mut found = Vec::new();
        for folder in ["lib/pods", "run"] {
            let entries = fs::read_dir(self.dir.path().join(folder)).into_iter().flatten().flatten();
            let names = entries.map(|e| e.path().display().to_string());
            found.extend(names.filter(|n| !n.contains("/oci")));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let here = self.dir.path().to_string_lossy().into_owned();
        found.extend(mounts.lines().filter(|l| l.contains(&here)).map(str::to_owned));
        for controller in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let below = fs::read_dir(controller.path().join(&self.cgroup[1..])).into_iter().flatten().flatten();
            found.extend(below.filter(|e| e.path().is_dir()).map(|e| e.path().display().to_string()));
        }
        let words = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let told = |pid: &i32| format!("process {pid}: {}", String::from_utf8_lossy(&words(pid)).replace('\0', " "));
        found.extend(self.supervisors().iter().map(told));
        found
    }

    /// Processes that have this bed in their command line, but the server.
    pub(crate) fn supervisors(&self) -> Vec<i32> {
        let here = self.dir.path().to_string_lossy().into_owned();
        let all = fs::read_dir("/proc").expect("proc").flatten();
        let numbers = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let server = self.server.as_ref().and_then(|s| i32::try_from(s.id()).ok());
        numbers
            .filter(|pid| Some(*pid) != server)
            .filter(|pid| {
                let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&words).contains(&here)
            })
            .collect()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for pid in self.supervisors().into_iter().filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let oci = self.dir.path().join("run/oci");
        for id in fs::read_dir(&oci).into_iter().flatten().flatten() {
            let _ =
                Command::new("runc").arg("--root").arg(&oci).args(["delete", "--force"]).arg(id.file_name()).status();
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let here = self.dir.path().to_string_lossy().into_owned();
        for at in mounts.lines().filter_map(|l| l.split(' ').nth(1)).filter(|at| at.starts_with(&here)) {
            let _ = rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH);
        }
        // Also what runs in a container whose supervisor is gone.
        if let Err(e) = LinuxCgroups::detect().and_then(|cgroups| cgroups.remove(&self.cgroup)) {
            eprintln!("{} stays: {e}", self.cgroup);
        }
    }
}
