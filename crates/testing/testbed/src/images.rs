//! Container images made from what the machine has: a docker archive of one layer, written here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::file;
use crate::{BedError, command};

/// Names under which the busybox image is imported; the first is the one that the golden data uses.
pub const BUSYBOX_IMAGES: &[&str] = &[
    "registry.k8s.io/e2e-test-images/busybox:1.36.1-1",
    "registry.k8s.io/e2e-test-images/busybox:1.29-2",
    "docker.io/library/busybox:latest",
];
/// Image with a bash that keeps environment variables of any name.
pub const BASH_IMAGE: &str = "docker.io/library/bash:5";
/// Sandbox image, as containerd 1.6 names it by default.
pub const PAUSE_IMAGE: &str = "registry.k8s.io/pause:3.6";

/// Waits for signals and reaps what its neighbours in a shared PID namespace leave behind.
const PAUSE_SOURCE: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int sig) { (void)sig; _exit(0); }
static void reap(int sig) { (void)sig; while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
    struct sigaction end = { .sa_handler = leave }, child = { .sa_handler = reap, .sa_flags = SA_NOCLDSTOP };
    if (sigaction(SIGINT, &end, NULL) || sigaction(SIGTERM, &end, NULL) || sigaction(SIGCHLD, &child, NULL)) return 1;
    for (;;) pause();
}
"#;

enum Entry {
    File { bytes: Vec<u8>, mode: u32 },
    Link(String),
    Folder { mode: u32 },
}

type Entries = BTreeMap<String, Entry>;

/// An image to be imported or pushed: files of its layers, and its config.
pub struct Image {
    /// Those below.
    finished: Vec<Entries>,
    /// The uppermost one.
    entries: Entries,
    config: serde_json::Value,
    names: Vec<String>,
}

impl Image {
    /// An image with the folders that every program expects, and users root (0) and app (1000).
    #[must_use]
    pub fn scratch(name: &str) -> Self {
        let folders = ["bin", "etc", "root", "home", "var", "run", "proc", "sys", "dev"];
        let mut entries: Entries = folders.iter().map(|f| ((*f).to_owned(), Entry::Folder { mode: 0o755 })).collect();
        entries.insert("tmp".into(), Entry::Folder { mode: 0o1777 });
        let config = json!({"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]});
        let image = Image { finished: Vec::new(), entries, config, names: vec![name.to_owned()] };
        image
            .file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home:/bin/sh\n".to_vec(), 0o644)
            .file("etc/group", b"root:x:0:\napp:x:1000:\n".to_vec(), 0o644)
    }

    /// Debian's static busybox with all its applets.
    ///
    /// # Errors
    /// When busybox is not installed.
    pub fn busybox(name: &str) -> Result<Self, BedError> {
        let program = Path::new("/bin/busybox");
        let bytes = file("read", program, std::fs::read(program))?;
        let mut image = Image::scratch(name).file("bin/busybox", bytes, 0o755).config("Cmd", json!(["sh"]));
        for applet in command::run("/bin/busybox", ["--list"])?.lines().filter(|a| *a != "busybox") {
            image.entries.insert(format!("bin/{applet}"), Entry::Link("busybox".into()));
        }
        Ok(image)
    }

    /// Busybox plus Debian's static bash.
    ///
    /// # Errors
    /// When one of them is not installed.
    pub fn bash(name: &str) -> Result<Self, BedError> {
        let program = Path::new("/bin/bash-static");
        let bytes = file("read", program, std::fs::read(program))?;
        Ok(Image::busybox(name)?.file("bin/bash", bytes, 0o755).config("Cmd", json!(["bash"])))
    }

    /// Over one of folders, layers of a hundred files each, which come to 55 MB, of which a third does not compress: some 20 MB to be sent. Another
    /// `seed`, another image.
    #[must_use]
    pub fn of_layers(name: &str, count: usize, seed: u64) -> Self {
        const FILES: usize = 100;
        const SIZE: usize = 550_000;
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..count).fold(Image::scratch(name), |image, layer| {
            let files = (0..FILES).map(|file| format!("usr/{layer}/{file}"));
            files.fold(image.next_layer(), |image, path| {
                let mut bytes = vec![b'x'; SIZE];
                rng.fill(&mut bytes[..SIZE / 3]);
                image.file(&path, bytes, 0o644)
            })
        })
    }

    /// Those that pods of tests run: busybox under all its names, and bash.
    ///
    /// # Errors
    /// As [`Image::bash`].
    pub fn of_pods() -> Result<[Self; 2], BedError> {
        let (first, rest) = (BUSYBOX_IMAGES[0], &BUSYBOX_IMAGES[1..]);
        let busybox = rest.iter().fold(Image::busybox(first)?, |image, name| image.also(name));
        Ok([busybox, Image::bash(BASH_IMAGE)?])
    }

    /// The sandbox image; its program is compiled in `scratch_dir`.
    ///
    /// # Errors
    /// When there is no C compiler or no static libc.
    pub fn pause(name: &str, scratch_dir: &Path) -> Result<Self, BedError> {
        let (source, program) = (scratch_dir.join("pause.c"), scratch_dir.join("pause"));
        file("write", &source, std::fs::write(&source, PAUSE_SOURCE))?;
        command::run(
            "gcc",
            ["-Os".as_ref(), "-static".as_ref(), "-s".as_ref(), "-o".as_ref(), program.as_os_str(), source.as_os_str()],
        )?;
        let bytes = file("read", &program, std::fs::read(&program))?;
        Ok(Image::scratch(name).file("pause", bytes, 0o755).config("Entrypoint", json!(["/pause"])))
    }

    /// Gives the image one more name.
    #[must_use]
    pub fn also(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Puts a file into the layer; `path` has no leading slash.
    #[must_use]
    pub fn file(mut self, path: &str, bytes: Vec<u8>, mode: u32) -> Self {
        self.entries.insert(path.to_owned(), Entry::File { bytes, mode });
        self
    }

    /// What is put into it from now on is in a layer of its own.
    #[must_use]
    pub fn next_layer(mut self) -> Self {
        self.finished.push(std::mem::take(&mut self.entries));
        self
    }

    /// Sets a field of the image config as OCI names it (`Entrypoint`, `Cmd`, `User`, `Env`, `StopSignal` ...).
    #[must_use]
    pub fn config(mut self, field: &str, value: serde_json::Value) -> Self {
        self.config[field] = value;
        self
    }

    /// First name of the image.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.names[0]
    }

    /// Writes the image as a docker archive into `dir` and returns its path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_archive(&self, dir: &Path) -> Result<PathBuf, BedError> {
        let packed = self.finished.iter().chain([&self.entries]).map(pack).collect::<std::io::Result<Vec<_>>>();
        let layers = file("pack", dir, packed)?;
        let diff_ids: Vec<String> = layers.iter().map(|l| format!("sha256:{}", hex(&Sha256::digest(l)))).collect();
        let layer_names: Vec<String> = (0..layers.len()).map(|n| format!("layer-{n}.tar")).collect();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let config = json!({
            "architecture": architecture, "os": "linux", "created": "2024-01-01T00:00:00Z", "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": vec![json!({"created": "2024-01-01T00:00:00Z", "created_by": "bosun test bed"}); layers.len()],
        })
        .to_string();
        let config_name = format!("{}.json", hex(&Sha256::digest(&config)));
        let manifest = json!([{"Config": config_name, "RepoTags": self.names, "Layers": layer_names}]).to_string();
        let name: String = self.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = dir.join(format!("{name}.tar"));
        let write = || {
            let mut archive = tar::Builder::new(std::fs::File::create(&path)?);
            let layers = layer_names.iter().map(String::as_str).zip(layers.iter().map(Vec::as_slice));
            for (name, bytes) in
                layers.chain([(config_name.as_str(), config.as_bytes()), ("manifest.json", manifest.as_bytes())])
            {
                archive.append_data(&mut header(bytes.len(), 0o644, tar::EntryType::Regular), name, bytes)?;
            }
            archive.finish()
        };
        file("write", &path, write())?;
        Ok(path)
    }
}

fn pack(entries: &Entries) -> std::io::Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    for (path, entry) in entries {
        match entry {
            Entry::File { bytes, mode } => {
                layer.append_data(&mut header(bytes.len(), *mode, tar::EntryType::Regular), path, bytes.as_slice())?
            }
            Entry::Link(to) => layer.append_link(&mut header(0, 0o777, tar::EntryType::Symlink), path, to)?,
            Entry::Folder { mode } => layer.append_data(
                &mut header(0, *mode, tar::EntryType::Directory),
                format!("{path}/"),
                std::io::empty(),
            )?,
        }
    }
    layer.into_inner()
}

fn header(size: usize, mode: u32, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_entry_type(kind);
    header.set_mtime(1_704_067_200);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
