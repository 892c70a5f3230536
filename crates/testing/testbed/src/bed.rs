//! One bed: a folder, a containerd, a bridge, images, and the processes started in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::cleanup::{self, Remains};
use crate::error::file;
use crate::network::Network;
use crate::process::ProcessId;
use crate::resizes::{failed_starts, write_noting_runc};
use crate::{BASH_IMAGE, BUSYBOX_IMAGES, BedError, Image, PAUSE_IMAGE, command, config, cri, machine, wait_until};

/// How a bed is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder in which the bed's own folder is created; short, for unix socket paths end at 107 bytes.
    pub parent: PathBuf,
    /// The containerd program.
    pub containerd: PathBuf,
    /// Folders searched before `PATH` for shim and runc, when they belong to another containerd than Debian's.
    pub path: Option<PathBuf>,
    /// Where containerd sends its spans (OTLP over gRPC), as `http://host:port`; `None`: nowhere. Debian's 1.6 has no part
    /// for this, 2.x has.
    pub collector: Option<String>,
    /// Notes with what containers start, and what their pods were granted then ([`TestBed::notes_dir`]).
    pub notes: bool,
    /// Leaves everything running when the bed is dropped.
    pub keep: bool,
    /// Called with one line per step.
    pub say: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        let containerd =
            std::env::var_os("TESTBED_CONTAINERD").map_or_else(|| "/usr/bin/containerd".into(), PathBuf::from);
        let path = containerd.parent().filter(|p| *p != Path::new("/usr/bin")).map(Path::to_owned);
        Options {
            parent: std::env::temp_dir(),
            containerd,
            path,
            collector: None,
            notes: false,
            keep: false,
            say: |_| {},
        }
    }
}

/// A containerd of our own with images and a pod network. Dropping it removes every trace.
pub struct TestBed {
    options: Options,
    dir: PathBuf,
    id: String,
    network: Network,
    containerd: Option<Child>,
    children: Vec<Child>,
    remains: Remains,
}

impl TestBed {
    /// Starts a bed: containerd answers and the images are there when it returns. From now on, SIGINT, SIGTERM and
    /// SIGHUP remove all beds of this process before they end it.
    ///
    /// # Errors
    /// When the machine lacks something (all of it is listed), or a step fails.
    pub fn start(options: Options) -> Result<Self, BedError> {
        cleanup::clean_on_signals();
        let problems = machine::missing();
        if !problems.is_empty() {
            let list = problems.iter().map(|p| format!("\n  - {p}")).collect::<String>();
            return Err(BedError::Machine(format!("{list}\n  `cargo xtask setup` installs what can be installed")));
        }
        cleanup::sweep_orphans(&options.parent);
        let mut rng = fastrand::Rng::new();
        let id = format!("{:06x}", rng.u32(..1 << 24));
        let network = Network::choose(&id, &mut rng)?;
        let dir = options.parent.join(format!("{}{id}", cleanup::PREFIX));
        file("create", &dir, std::fs::create_dir_all(&dir))?;
        let remains = Remains::new(&dir, &network.name, &network.bridge, format!("/bosun-{id}"));
        remains.save()?;
        let mut bed = TestBed { options, dir, id, network, containerd: None, children: Vec::new(), remains };
        bed.set_up()?;
        Ok(bed)
    }

    fn set_up(&mut self) -> Result<(), BedError> {
        let say = self.options.say;
        for folder in ["root", "state", "cni", "certs.d", "images", "manifests", "logs", "node"] {
            let path = self.dir.join(folder);
            file("create", &path, std::fs::create_dir_all(&path))?;
        }
        say(&format!("network {} with bridge {}", self.network.subnet(), self.network.bridge));
        self.network.up()?;
        cleanup::create_cgroups(&self.remains.cgroup_root)?;
        self.write("cni/10-bed.conflist", &config::cni(&self.dir, &self.network))?;
        self.write("resolv.conf", "nameserver 127.0.0.1\n")?;
        let is_traced = self.options.collector.is_some();
        let text = config::containerd(&self.dir, PAUSE_IMAGE, self.snapshotter(), is_traced);
        let text = if self.options.notes { text + &self.noting_runc()? } else { text };
        self.write("containerd.toml", &text)?;
        say(&format!("containerd in {}", self.dir.display()));
        self.start_containerd()?;
        say("images from local parts");
        let pause = Image::pause(PAUSE_IMAGE, &self.dir.join("images"))?.also("registry.k8s.io/pause:3.10");
        self.import(&pause)?;
        let (first, rest) = (BUSYBOX_IMAGES[0], &BUSYBOX_IMAGES[1..]);
        self.import(&rest.iter().fold(Image::busybox(first)?, |image, name| image.also(name)))?;
        self.import(&Image::bash(BASH_IMAGE)?)
    }

    /// A runc that notes what it is told; the line of containerd's configuration that names it, which ends with runc's options.
    fn noting_runc(&self) -> Result<String, BedError> {
        let (at, notes) = (self.dir.join("noting-runc"), self.notes_dir());
        file("create", &notes, std::fs::create_dir_all(&notes))?;
        write_noting_runc(&at, &notes, &self.dir.join("node/allocated_pods_state"))?;
        Ok(format!("        BinaryName = \"{}\"\n", at.display()))
    }

    /// Where notes are kept ([`Options::notes`]); [`crate::notes`] reads them.
    #[must_use]
    pub fn notes_dir(&self) -> PathBuf {
        self.dir.join("notes")
    }

    /// The bed's folder; everything of it lies below.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A short name that no other bed on this machine has.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// containerd's socket, for CRI and its own services.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("containerd.sock")
    }

    /// The cgroup under which pods of this bed must live.
    #[must_use]
    pub fn cgroup_root(&self) -> &str {
        &self.remains.cgroup_root
    }

    /// Address of the test node: the gateway of the pod network.
    #[must_use]
    pub fn node_ip(&self) -> String {
        self.network.gateway()
    }

    pub(crate) fn claim_service_address(&self) -> Result<String, BedError> {
        self.network.claim_service_address()
    }

    /// Writes a file below the bed's folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.dir.join(name);
        file("write", &path, std::fs::write(&path, text))?;
        Ok(path)
    }

    /// Brings an image into containerd under all its names.
    ///
    /// # Errors
    /// When it cannot be written or containerd refuses it.
    pub fn import(&self, image: &Image) -> Result<(), BedError> {
        let archive = image.write_archive(&self.dir.join("images"))?;
        let archive = archive.to_string_lossy().into_owned();
        self.ctr(&["images", "import", &archive]).map(drop)
    }

    /// Runs `ctr` in the namespace that CRI uses, and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn ctr(&self, args: &[&str]) -> Result<String, BedError> {
        let socket = self.socket().to_string_lossy().into_owned();
        let near = self.options.containerd.with_file_name("ctr");
        let program = if near.exists() { near.to_string_lossy().into_owned() } else { "ctr".to_owned() };
        command::run(&program, ["-a", &socket, "-n", "k8s.io"].into_iter().chain(args.iter().copied()))
    }

    /// What the runtime itself says: containers by name of pod and container, with attempt and state (1 = running).
    ///
    /// # Errors
    /// When it does not answer.
    pub fn containers(&self) -> Result<Vec<(String, String, u32, i32)>, BedError> {
        let list = cri::ask(&self.socket(), async |cri| cri.containers().await).map_err(unanswered)?;
        let label = |c: &cri_api::v1::Container, key: &str| c.labels.get(key).cloned().unwrap_or_default();
        let mut all: Vec<_> = list
            .iter()
            .map(|c| {
                let attempt = c.metadata.as_ref().map_or(0, |m| m.attempt);
                let pod = label(c, "io.kubernetes.pod.name");
                (pod, label(c, "io.kubernetes.container.name"), attempt, c.state)
            })
            .collect();
        all.sort();
        Ok(all)
    }

    /// Names of the pods that have a sandbox, running or not.
    ///
    /// # Errors
    /// When the runtime does not answer.
    pub fn sandboxes(&self) -> Result<Vec<String>, BedError> {
        let list = cri::ask(&self.socket(), async |cri| cri.sandboxes().await).map_err(unanswered)?;
        let mut names: Vec<_> = list.into_iter().filter_map(|s| Some(s.metadata?.name)).collect();
        names.sort();
        Ok(names)
    }

    /// Starts containerd (again) and waits until it answers.
    ///
    /// # Errors
    /// When it does not answer within 30 s; the end of its log is in the error.
    pub fn start_containerd(&mut self) -> Result<(), BedError> {
        let mut start = Command::new(&self.options.containerd);
        start.arg("--config").arg(self.dir.join("containerd.toml"));
        if let Some(first) = &self.options.path {
            let rest = std::env::var_os("PATH").unwrap_or_default();
            let mut path = first.clone().into_os_string();
            path.push(":");
            path.push(rest);
            start.env("PATH", path);
        }
        if let Some(collector) = &self.options.collector {
            start.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
            // Milliseconds: a test waits for it.
            start.env("OTEL_BSP_SCHEDULE_DELAY", "500");
        }
        let log = self.dir.join("containerd.log");
        let child = self.spawn_logged(&mut start, &log)?;
        self.containerd = Some(child);
        let answers = |bed: &mut Self| match bed.containerd.as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => Err(format!("containerd ended with {status}")),
            _ => cri::ready(&bed.socket()),
        };
        wait_until("containerd to serve", Duration::from_secs(30), || answers(self)).map_err(|e| match e {
            BedError::Timeout { what, limit, detail } => {
                BedError::Timeout { what, limit, detail: format!("{detail}\n{}", tail(&log, 15)) }
            }
            e => e,
        })
    }

    /// Kills containerd as `kill -9` does; its shims and containers go on.
    pub fn kill_containerd(&mut self) {
        if let Some(mut child) = self.containerd.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pid of containerd while it runs.
    #[must_use]
    pub fn containerd_pid(&self) -> Option<u32> {
        self.containerd.as_ref().map(Child::id)
    }

    /// Starts a process that ends with the bed; its output goes to `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&mut self, command: &mut Command, log: &Path) -> Result<u32, BedError> {
        let child = self.spawn_logged(command, log)?;
        let pid = child.id();
        self.children.push(child);
        Ok(pid)
    }

    pub(crate) fn spawn_logged(&mut self, command: &mut Command, log: &Path) -> Result<Child, BedError> {
        use std::os::unix::process::CommandExt;
        let out = file("open", log, std::fs::OpenOptions::new().create(true).append(true).open(log))?;
        let err = file("open", log, out.try_clone())?;
        // A process group of its own: ctrl-c in a terminal reaches us, and we end the children in order.
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).spawn();
        let child = child.map_err(|e| BedError::Command { command: command::show(command), output: e.to_string() })?;
        self.remains.add_process(child.id());
        self.remains.save()?;
        Ok(child)
    }

    /// Overlay needs a file system that can be its upper layer; inside a container's own overlay it cannot.
    fn snapshotter(&self) -> &'static str {
        let probe = self.dir.join("probe");
        let path = |name: &str| probe.join(name).to_string_lossy().into_owned();
        let names = ["lower", "upper", "work", "merged"];
        let made = names.iter().all(|n| std::fs::create_dir_all(path(n)).is_ok());
        let options = format!("lowerdir={},upperdir={},workdir={}", path("lower"), path("upper"), path("work"));
        let mounted =
            made && command::run("mount", ["-t", "overlay", "-o", &options, "overlay", &path("merged")]).is_ok();
        if mounted {
            let _ = command::run("umount", [&path("merged")]);
        }
        let _ = std::fs::remove_dir_all(&probe);
        if mounted { "overlayfs" } else { "native" }
    }

    /// By the name of their pod: starts of containers that containerd gave up so far.
    #[must_use]
    pub fn failed_starts(&self) -> BTreeMap<String, u64> {
        failed_starts(&std::fs::read_to_string(self.dir.join("containerd.log")).unwrap_or_default())
    }

    /// The last lines of containerd's log.
    #[must_use]
    pub fn containerd_log(&self) -> String {
        tail(&self.dir.join("containerd.log"), 40)
    }

    /// Ends everything and removes every trace; what could not be removed is listed.
    pub fn close(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        for child in self.children.iter_mut().chain(self.containerd.as_mut()) {
            if let Some(p) = i32::try_from(child.id()).ok().and_then(ProcessId::of) {
                p.signal(Signal::KILL);
            }
            let _ = child.wait();
        }
        self.children.clear();
        self.containerd = None;
        self.remains.remove()
    }
}

fn unanswered(detail: String) -> BedError {
    BedError::Answer { from: "containerd".to_owned(), detail }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if self.options.keep {
            self.remains.release();
            return;
        }
        if self.dir.exists() {
            self.end();
        }
    }
}

/// The last `lines` lines of a text file.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
