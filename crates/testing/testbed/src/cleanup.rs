//! Removing what a bed left on the machine: processes, mounts, network, cgroups, files.
//!
//! What there is to remove is plain data in the bed's `bed.json`, so that anybody can do it: the bed itself, the
//! signal thread, or the next bed when the owner was killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::error::file;
use crate::process::{self, ProcessId};
use crate::{BedError, network};

mod guests;

pub(crate) use guests::{GUEST_PREFIX, own_guest, remove_guest, sweep_guests};

/// Every bed's folder starts with this.
pub(crate) const PREFIX: &str = "bosun-bed-";

/// Beds of this process that are not removed yet.
static LIVE: Mutex<Vec<Remains>> = Mutex::new(Vec::new());

/// What one bed left, or will have left, on the machine.
#[derive(Debug, Clone)]
pub(crate) struct Remains {
    dir: PathBuf,
    network: String,
    bridge: String,
    pub(crate) cgroup_root: String,
    owner: Option<ProcessId>,
    processes: BTreeSet<ProcessId>,
}

impl Remains {
    pub(crate) fn new(dir: &Path, network: &str, bridge: &str, cgroup_root: String) -> Self {
        let owner = i32::try_from(std::process::id()).ok().and_then(ProcessId::of);
        let (dir, network, bridge) = (dir.to_owned(), network.to_owned(), bridge.to_owned());
        Remains { dir, network, bridge, cgroup_root, owner, processes: BTreeSet::new() }
    }

    pub(crate) fn add_process(&mut self, pid: u32) {
        self.processes.retain(|p| p.alive());
        self.processes.extend(i32::try_from(pid).ok().and_then(ProcessId::of));
    }

    /// Writes `bed.json` and tells the signal thread.
    pub(crate) fn save(&self) -> Result<(), BedError> {
        let path = self.dir.join("bed.json");
        let id = |p: &ProcessId| json!([p.pid, p.start_ticks]);
        let processes: Vec<_> = self.processes.iter().map(id).collect();
        let text = json!({
            "network": self.network, "bridge": self.bridge, "cgroupRoot": self.cgroup_root,
            "owner": self.owner.as_ref().map(id), "processes": processes,
        });
        file("write", &path, std::fs::write(&path, text.to_string()))?;
        let mut live = live();
        live.retain(|r| r.dir != self.dir);
        live.push(self.clone());
        Ok(())
    }

    fn load(dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(dir.join("bed.json")).ok()?;
        let data: serde_json::Value = serde_json::from_str(&text).ok()?;
        let word = |key: &str| data[key].as_str().map(str::to_owned);
        let id = |v: &serde_json::Value| {
            Some(ProcessId { pid: i32::try_from(v[0].as_i64()?).ok()?, start_ticks: v[1].as_u64()? })
        };
        Some(Remains {
            dir: dir.to_owned(),
            network: word("network")?,
            bridge: word("bridge")?,
            cgroup_root: word("cgroupRoot")?,
            owner: id(&data["owner"]),
            processes: data["processes"].as_array()?.iter().filter_map(id).collect(),
        })
    }

    /// Leaves the bed to whoever asked to keep it: no owner, so that no sweep takes it away.
    pub(crate) fn release(&mut self) {
        self.owner = None;
        let _ = self.save();
        live().retain(|r| r.dir != self.dir);
    }

    /// Removes everything; what could not be removed is listed.
    pub(crate) fn remove(&self) -> Vec<String> {
        let mut left = Vec::new();
        process::kill_all(&self.processes);
        self.kill_containers();
        self.unmount();
        network::remove(&self.network, &self.bridge);
        left.extend(remove_cgroups(&self.cgroup_root));
        if let Err(e) = std::fs::remove_dir_all(&self.dir)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            left.push(format!("{}: {e}", self.dir.display()));
        }
        live().retain(|r| r.dir != self.dir);
        left
    }

    fn kill_containers(&self) {
        // The shims' own sockets lie outside the bed; each task's folder names its one.
        let tasks = self.dir.join("state/io.containerd.runtime.v2.task/k8s.io");
        let sockets: Vec<String> = std::fs::read_dir(tasks)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|e| std::fs::read_to_string(e.path().join("address")).ok())
            .collect();
        let shims = process::shims_of(&self.dir.join("containerd.sock"));
        let supervisors = process::supervisors_of(&self.dir);
        process::kill_all(&process::with_descendants(&shims.union(&supervisors).copied().collect()));
        process::kill_all(&processes_in(&self.cgroup_root));
        for socket in sockets {
            let path = socket.trim().trim_start_matches("unix://");
            if path.starts_with("/run/containerd/s/") {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn unmount(&self) {
        let Ok(table) = procfs::process::Process::myself().and_then(|p| p.mountinfo()) else { return };
        let mut ours: Vec<PathBuf> =
            table.into_iter().map(|m| m.mount_point).filter(|p| p.starts_with(&self.dir)).collect();
        ours.reverse();
        for point in ours {
            let _ = rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

fn live() -> std::sync::MutexGuard<'static, Vec<Remains>> {
    LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Folders of a cgroup in every hierarchy that has it.
fn cgroup_folders(root: &str) -> Vec<PathBuf> {
    let relative = root.trim_start_matches('/');
    if !relative.starts_with("bosun-") {
        return Vec::new(); // never somebody else's tree
    }
    let base = Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(base).into_iter().flatten().flatten().map(|e| e.path());
    let folders = hierarchies.chain([base.to_owned()]).map(|h| h.join(relative));
    folders.filter(|f| f.is_dir()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Creates the bed's root cgroup in every hierarchy: a kubelet does not create its own root.
pub(crate) fn create_cgroups(root: &str) -> Result<(), BedError> {
    let base = Path::new("/sys/fs/cgroup");
    let unified = base.join("cgroup.controllers").exists();
    let hierarchies: Vec<PathBuf> = if unified {
        vec![base.to_owned()]
    } else {
        let entries = file("list", base, std::fs::read_dir(base))?.flatten().map(|e| e.path());
        entries.filter(|p| p.join("cgroup.procs").exists()).collect()
    };
    for hierarchy in hierarchies {
        let folder = hierarchy.join(root.trim_start_matches('/'));
        file("create", &folder, std::fs::create_dir_all(&folder))?;
        // A cpuset starts empty on v1, and nothing can live in an empty one.
        for name in ["cpuset.cpus", "cpuset.mems"].iter().filter(|_| !unified) {
            if let Ok(value) = std::fs::read_to_string(hierarchy.join(name)) {
                let path = folder.join(name);
                file("write", &path, std::fs::write(&path, value))?;
            }
        }
        if unified && let Ok(controllers) = std::fs::read_to_string(folder.join("cgroup.controllers")) {
            let all: Vec<String> = controllers.split_whitespace().map(|c| format!("+{c}")).collect();
            let path = folder.join("cgroup.subtree_control");
            file("write", &path, std::fs::write(&path, all.join(" ")))?;
        }
    }
    Ok(())
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            below(&entry.path(), found);
        }
    }
    found.push(folder.to_owned());
}

fn processes_in(root: &str) -> BTreeSet<ProcessId> {
    let mut folders = Vec::new();
    cgroup_folders(root).iter().for_each(|f| below(f, &mut folders));
    let lists = folders.iter().filter_map(|f| std::fs::read_to_string(f.join("cgroup.procs")).ok());
    lists.flat_map(|l| l.lines().filter_map(|p| ProcessId::of(p.parse().ok()?)).collect::<Vec<_>>()).collect()
}

/// Removes a cgroup tree, children first; the kernel may need a moment after the last process.
fn remove_cgroups(root: &str) -> Vec<String> {
    let start = Instant::now();
    loop {
        let mut folders = Vec::new();
        cgroup_folders(root).iter().for_each(|f| below(f, &mut folders));
        let left: Vec<String> = folders
            .iter()
            .filter_map(|f| std::fs::remove_dir(f).err().map(|e| format!("{}: {e}", f.display())))
            .collect();
        if left.is_empty() || start.elapsed() > Duration::from_secs(5) {
            return left;
        }
        process::pause();
    }
}

/// Removes beds in `parent` whose owner no longer lives. Kept beds (no owner) stay.
pub fn sweep_orphans(parent: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = folders.filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)).map(|e| e.path());
    let mut swept = Vec::new();
    for remains in ours.filter_map(|dir| Remains::load(&dir)) {
        if remains.owner.is_some_and(|owner| !owner.alive()) {
            remains.remove();
            swept.push(remains.dir);
        }
    }
    swept
}

/// Removes one bed, kept or not, by its folder; `None` when there is none. What could not be removed is listed.
#[must_use]
pub fn remove_bed(dir: &Path) -> Option<Vec<String>> {
    Remains::load(dir).map(|r| r.remove())
}

/// From now on, SIGINT, SIGTERM and SIGHUP remove all beds of this process and then end it.
pub(crate) fn clean_on_signals() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(watch_signals);
}

fn watch_signals() {
    use tokio::signal::unix::{SignalKind, signal};
    let (ready, wait) = std::sync::mpsc::channel();
    let watch = async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut int), Ok(mut term), Ok(mut hup)] = kinds.map(signal) else { return };
        let _ = ready.send(());
        let code = tokio::select! { _ = int.recv() => 130, _ = term.recv() => 143, _ = hup.recv() => 129 };
        let beds = live().clone();
        for bed in beds {
            bed.remove();
        }
        guests::remove_all();
        std::process::exit(code);
    };
    std::thread::spawn(move || {
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
            runtime.block_on(watch);
        }
    });
    let _ = wait.recv();
}
