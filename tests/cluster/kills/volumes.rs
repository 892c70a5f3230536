//! The volumes of the test: a directory, an ext4 and a raw device, each with something of its users that nobody may lose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::site::{Claim, DRIVER, claimed, raw_user, user_that};

/// What users have in a volume with files beside what pods write.
const FILES: [&str; 3] = ["precious", "deep/er/precious", ".hidden/precious"];
const SIZE: u64 = 16 << 20;
/// Where a raw volume has something of its user's, beyond what pods write.
const PRECIOUS_AT: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Directory,
    FileSystem,
    Raw,
}

/// One volume, by its number.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub(super) at: usize,
    kind: Kind,
    /// Where the driver has it.
    folder: PathBuf,
}

impl Volume {
    pub(super) fn new(at: usize, driver: &Path) -> Self {
        let kind = [Kind::Directory, Kind::FileSystem, Kind::Raw][at % 3];
        Self { at, kind, folder: driver.join(format!("volumes/vol-{at}")) }
    }

    pub(super) fn claim(&self) -> Claim {
        let mut claim = Claim::of(&self.at.to_string(), DRIVER);
        match self.kind {
            Kind::Directory => {}
            Kind::FileSystem => {
                claim.source["fsType"] = json!("ext4");
                claim.source["volumeAttributes"]["kind"] = json!("ext4");
            }
            Kind::Raw => claim.kind = "Block",
        }
        claim
    }

    /// What a user has in it before the first pod comes.
    pub(super) fn fill(&self) {
        let words = |file: &str| format!("{file} of {}", self.at);
        let files = match self.kind {
            Kind::Directory => self.folder.join("data"),
            Kind::FileSystem => self.folder.join("origin"),
            Kind::Raw => {
                fs::create_dir_all(&self.folder).expect("a folder");
                let mut bytes = vec![0; usize::try_from(SIZE).expect("a size")];
                let precious = words("precious");
                bytes[PRECIOUS_AT..PRECIOUS_AT + precious.len()].copy_from_slice(precious.as_bytes());
                return fs::write(self.image(), bytes).expect("an image");
            }
        };
        for file in FILES {
            let path = files.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of a user");
            fs::write(&path, words(file)).expect("a file of a user");
        }
        if self.kind == Kind::FileSystem {
            let image = fs::File::create(self.image()).expect("an image");
            image.set_len(SIZE).expect("its size");
            let (from, image) = (files.display().to_string(), self.image().display().to_string());
            run("mkfs.ext4", &["-q", "-d", &from, &image]);
        }
    }

    fn image(&self) -> PathBuf {
        self.folder.join("image")
    }

    /// A pod that leaves its name in the volume.
    pub(super) fn user(&self, name: &str) -> Value {
        let claim = claimed(&self.at.to_string());
        match self.kind {
            Kind::Raw => raw_user(name, &claim, &format!("echo {name} > /dev/raw; sync;")),
            _ => user_that(name, &claim, &format!("echo {name} >> /data/words; sync;"), &json!({})),
        }
    }

    /// Whether the pod of this name was the last one that had the volume. Only while nobody has it.
    pub(super) fn was_left_by(&self, name: &str) -> Result<(), String> {
        let words = match self.kind {
            Kind::Raw => self.bytes(0, name.len() + 1),
            _ => self.file("words"),
        };
        if words.lines().last() == Some(name) { Ok(()) } else { Err(format!("{:?}: {words:?}", self.kind)) }
    }

    /// What its users had before is there. Only while nobody has it.
    pub(super) fn assert_whole(&self, when: &str) {
        let words = |file: &str| format!("{file} of {}", self.at);
        match self.kind {
            Kind::Raw => {
                let wanted = words("precious");
                assert_eq!(self.bytes(PRECIOUS_AT, wanted.len()), wanted, "{when}: {self:?}");
            }
            _ => FILES.iter().for_each(|file| assert_eq!(self.file(file), words(file), "{when}: {self:?}")),
        }
        if self.kind == Kind::FileSystem {
            run("e2fsck", &["-fn", &self.image().display().to_string()]);
        }
    }

    fn file(&self, name: &str) -> String {
        match self.kind {
            Kind::FileSystem => run("debugfs", &["-R", &format!("cat /{name}"), &self.image().display().to_string()]),
            _ => fs::read_to_string(self.folder.join("data").join(name)).unwrap_or_default(),
        }
    }

    fn bytes(&self, from: usize, length: usize) -> String {
        let bytes = fs::read(self.image()).expect("the image");
        String::from_utf8_lossy(&bytes[from..from + length]).into_owned()
    }
}

/// What a program of the host wrote.
fn run(program: &str, words: &[&str]) -> String {
    let out = Command::new(program).args(words).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{program} {words:?}: {said}{}", String::from_utf8_lossy(&out.stdout));
    String::from_utf8_lossy(&out.stdout).into_owned()
}
