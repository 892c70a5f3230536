//! One bed: a folder, a container runtime, a bridge, images, and the processes started in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::Signal;
use serde_json::Value;

use crate::cleanup::{self, Remains};
use crate::error::file;
use crate::network::Network;
use crate::process::ProcessId;
use crate::resizes::{failed_starts, write_noting_runc};
use crate::runtime::RuntimeKind;
use crate::{BedError, Image, PAUSE_IMAGE, command, config, cri, machine};

mod serving;

/// How a bed is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder in which the bed's own folder is created; short, for unix socket paths end at 107 bytes.
    pub parent: PathBuf,
    /// Which runtime there is; `TESTBED_RUNTIME` has the default.
    pub runtime: RuntimeKind,
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
            runtime: RuntimeKind::of_environment(),
            containerd,
            path,
            collector: None,
            notes: false,
            keep: false,
            say: |_| {},
        }
    }
}

/// A container runtime of our own with images and a pod network. Dropping it removes every trace.
pub struct TestBed {
    options: Options,
    dir: PathBuf,
    id: String,
    network: Network,
    runtime: Option<Child>,
    children: Vec<Child>,
    remains: Remains,
}

impl TestBed {
    /// Starts a bed: the runtime answers and the images are there when it returns. From now on, SIGINT, SIGTERM and
    /// SIGHUP remove all beds of this process before they end it.
    ///
    /// # Errors
    /// When the machine lacks something (all of it is listed), or a step fails.
    pub fn start(options: Options) -> Result<Self, BedError> {
        cleanup::clean_on_signals();
        let problems = machine::missing(options.runtime.needs());
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
        let mut bed = TestBed { options, dir, id, network, runtime: None, children: Vec::new(), remains };
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
        match self.options.runtime {
            RuntimeKind::Containerd => {
                let is_traced = self.options.collector.is_some();
                let text = config::containerd(&self.dir, PAUSE_IMAGE, self.snapshotter(), is_traced);
                let text = if self.options.notes { text + &self.noting_runc("        BinaryName")? } else { text };
                self.write("containerd.toml", &text)?;
                say(&format!("containerd in {}", self.dir.display()));
                self.start_runtime()?;
                say("images from local parts");
                let pause = Image::pause(PAUSE_IMAGE, &self.dir.join("images"))?.also("registry.k8s.io/pause:3.10");
                self.import(&pause)?;
            }
            RuntimeKind::Own(ref program) => {
                let text = config::own_runtime(&self.dir, program);
                let text = if self.options.notes { text + &self.noting_runc("oci-runtime")? } else { text };
                self.write("runtime.toml", &text)?;
                say(&format!("bosun's own runtime in {}", self.dir.display()));
                self.start_runtime()?;
                say("images from local parts");
            }
        }
        Image::of_pods()?.iter().try_for_each(|image| self.import(image))
    }

    /// A runc that notes what it is told; the line of the runtime's configuration that names it, which ends where that belongs.
    fn noting_runc(&self, key: &str) -> Result<String, BedError> {
        let (at, notes) = (self.dir.join("noting-runc"), self.notes_dir());
        file("create", &notes, std::fs::create_dir_all(&notes))?;
        write_noting_runc(&at, &notes, &self.dir.join("node/allocated_pods_state"))?;
        Ok(format!("{key} = \"{}\"\n", at.display()))
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

    /// The runtime's socket, for CRI and, of containerd, its own services.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.options.runtime.socket(&self.dir)
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

    /// Brings an image into the runtime under all its names.
    ///
    /// # Errors
    /// When it cannot be written or the runtime refuses it.
    pub fn import(&self, image: &Image) -> Result<(), BedError> {
        let archive = image.write_archive(&self.dir.join("images"))?;
        let archive = archive.to_string_lossy().into_owned();
        let RuntimeKind::Own(program) = &self.options.runtime else {
            return self.ctr(&["images", "import", &archive]).map(drop);
        };
        let root = self.dir.join(config::OWN_ROOT).to_string_lossy().into_owned();
        command::run(&program.to_string_lossy(), ["image", "import", "--root", &root, &archive]).map(drop)
    }

    /// Runs `ctr` in the namespace that CRI uses, and returns what it printed.
    ///
    /// # Errors
    /// When it fails, or the runtime is no containerd.
    pub fn ctr(&self, args: &[&str]) -> Result<String, BedError> {
        if self.has_own_runtime() {
            let command = format!("ctr {}", args.join(" "));
            return Err(BedError::Command { command, output: "this bed has no containerd".to_owned() });
        }
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
        let _served = self.meanwhile()?;
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
        let _served = self.meanwhile()?;
        let list = cri::ask(&self.socket(), async |cri| cri.sandboxes().await).map_err(unanswered)?;
        let mut names: Vec<_> = list.into_iter().filter_map(|s| Some(s.metadata?.name)).collect();
        names.sort();
        Ok(names)
    }

    /// What the runtime tells of a container when asked for more: JSON of its own, with its first process (`pid`) and what the OCI
    /// runtime was told (`runtimeSpec`).
    ///
    /// # Errors
    /// When it does not answer, or not so.
    pub fn container_info(&self, id: &str) -> Result<Value, BedError> {
        let id = plain_id(id);
        let _served = self.meanwhile()?;
        let text = cri::ask(&self.socket(), async |cri| cri.container_info(id).await).map_err(unanswered)?;
        serde_json::from_str(&text).map_err(|e| unanswered(format!("{e}: {text}")))
    }

    /// Kills the first process of a container, as somebody of the machine may.
    ///
    /// # Errors
    /// When the runtime does not say which that is, or it is gone.
    pub fn kill_container(&self, id: &str) -> Result<(), BedError> {
        let info = self.container_info(id)?;
        let process = info["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).and_then(ProcessId::of);
        let process = process.ok_or_else(|| unanswered(format!("no process of {id}: {}", info["pid"])))?;
        process.signal(Signal::KILL);
        Ok(())
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
        let child = command::start(command, log)?;
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

    /// The last lines of the runtime's log.
    #[must_use]
    pub fn runtime_log(&self) -> String {
        tail(&self.options.runtime.log(&self.dir), 40)
    }

    /// Ends everything and removes every trace; what could not be removed is listed.
    pub fn close(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        for child in self.children.iter_mut().chain(self.runtime.as_mut()) {
            if let Some(p) = i32::try_from(child.id()).ok().and_then(ProcessId::of) {
                p.signal(Signal::KILL);
            }
            let _ = child.wait();
        }
        self.children.clear();
        self.runtime = None;
        self.remains.remove()
    }
}

fn unanswered(detail: String) -> BedError {
    BedError::Answer { from: "the container runtime".to_owned(), detail }
}

/// The id of a container without the name of its runtime before it (`containerd://`, `bosun://`).
#[must_use]
pub fn plain_id(id: &str) -> &str {
    id.split_once("://").map_or(id, |(_, id)| id)
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
