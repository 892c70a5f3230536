//! A volume with very many files, a chain of directories deeper than any path, pipes and devices, beside other pods: they start and
//! go as fast as ever while its files are given to a group, and while a directory with as much is removed. `MANY_FILES` says how many
//! files.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{PODS, SOON, create, delete, lasting, start, wait_gone, wait_running};
use crate::site::{Claim, DRIVER, Site, claimed, user};

const IN_ONE: usize = 1000;
const GROUP: u32 = 2000;

fn fill(dir: &Path, files: usize) {
    for n in 0..files {
        let at = dir.join(format!("d{}", n / IN_ONE));
        if n % IN_ONE == 0 {
            std::fs::create_dir_all(&at).expect("a folder");
        }
        std::fs::File::create(at.join(format!("f{n}"))).expect("a file");
    }
}

/// Directories, one in the other: no path is as long.
const DEEP: usize = 10_000;
/// What of it is made at a time.
const AT_ONCE: usize = 1000;

/// A chain of directories below `dir`.
fn dig(dir: &Path) {
    let (top, next) = (dir.join("d"), dir.join("next"));
    let chain = |at: &Path| (1..AT_ONCE).fold(at.to_owned(), |path, _| path.join("d"));
    for _ in 0..DEEP / AT_ONCE {
        let bottom = chain(&next);
        std::fs::create_dir_all(&bottom).expect("a chain of folders");
        if top.exists() {
            std::fs::rename(&top, bottom.join("d")).expect("it becomes longer");
        }
        std::fs::rename(&next, &top).expect("it is in its place");
    }
}

/// Files that nobody may open: who opens the pipe waits for ever.
fn set_traps(dir: &Path) {
    for (name, words) in [("pipe", &["p"] as &[&str]), ("null", &["c", "1", "3"]), ("disk", &["b", "7", "200"])] {
        let made = std::process::Command::new("mknod").arg(dir.join(name)).args(words).status().expect("mknod");
        assert!(made.success(), "{name}");
    }
}

/// Kinds and groups of what [`set_traps`] made.
fn traps(dir: &Path) -> Vec<(bool, u32)> {
    let found = ["pipe", "null", "disk"].map(|name| std::fs::symlink_metadata(dir.join(name)).expect("it is there"));
    let is =
        [found[0].file_type().is_fifo(), found[1].file_type().is_char_device(), found[2].file_type().is_block_device()];
    is.into_iter().zip(found.iter().map(MetadataExt::gid)).collect()
}

/// How many directories are in each other from here on.
fn depth(dir: &Path) -> usize {
    let out = std::process::Command::new("find").arg(dir.join("d")).args(["-printf", "."]).output().expect("find");
    out.stdout.len()
}

/// How long three pods take to come and to go, one after the other.
fn others(site: &Site, round: &str) -> Duration {
    let begun = Instant::now();
    for n in 0..3 {
        let name = format!("{round}-{n}");
        create(&site.node, &lasting(&name));
        wait_running(&site.node, &name);
        delete(&site.node, &name);
        wait_gone(&site.node, &name);
    }
    begun.elapsed()
}

#[test]
fn a_volume_with_very_many_files_holds_up_no_other_pod() {
    let files: usize = std::env::var("MANY_FILES").map_or(5000, |n| n.parse().expect("a number"));
    let limit = SOON + Duration::from_millis(u64::try_from(files).expect("a number"));
    let site = Site::on(start(), &Config::default());
    let many = Claim::of("many", DRIVER);
    site.claim(&many);
    let data = site.folder(DRIVER).join("volumes/vol-many/data");
    fill(&data, files);
    dig(&data);
    set_traps(&data);
    let usual = others(&site, "before");

    let more = json!({"securityContext": {"fsGroup": GROUP}});
    let mut owner = user("owner", &claimed("many"), &more);
    let mut add =
        |at: &str, what: Value| owner.pointer_mut(at).and_then(Value::as_array_mut).expect("a list").push(what);
    add("/spec/volumes", json!({"name": "scratch", "emptyDir": {}}));
    add("/spec/containers/0/volumeMounts", json!({"name": "scratch", "mountPath": "/scratch"}));
    let begun = Instant::now();
    create(&site.node, &owner);
    let published = || {
        site.attach();
        let called = site.calls_about("many").iter().any(|call| call["call"] == "NodePublishVolume");
        if called { Ok(()) } else { Err("not yet".to_owned()) }
    };
    wait_until("the volume to be published", SOON, published).expect("it is published");
    let given = others(&site, "given");
    let group = |n: usize| std::fs::metadata(data.join(format!("d{}/f{n}", n / IN_ONE))).expect("a file").gid();
    let pod = || site.node.cluster.admin().get(&format!("{PODS}/owner")).expect("a pod");
    let runs = || {
        let pod = pod();
        if pod["status"]["phase"] == "Running" { Ok(pod) } else { Err(pod["status"]["phase"].to_string()) }
    };
    let uid = wait_until("its owner to run", limit, runs).expect("it runs")["metadata"]["uid"].clone();
    let took = begun.elapsed();
    assert!([0, files / 2, files - 1].into_iter().all(|n| group(n) == GROUP), "each file is the group's");

    let pod_dir = site.root().join("pods").join(uid.as_str().expect("a UID"));
    assert_eq!(traps(&data), [(true, GROUP); 3], "what is no file is the group's as well");
    let scratch = pod_dir.join("volumes/kubernetes.io~empty-dir/scratch");
    fill(&scratch, files);
    dig(&scratch);
    set_traps(&scratch);
    let begun = Instant::now();
    delete(&site.node, "owner");
    let removed = others(&site, "removed");
    let gone = || if pod_dir.exists() { Err(pod_dir.display().to_string()) } else { Ok(()) };
    wait_until("its folder to go", limit, gone).expect("it goes");
    println!(
        "{files} files, {DEEP} directories in each other: their pod ran after {took:.1?} and was gone after {:.1?}; three other pods came and went in {usual:.2?} before, \
         {given:.2?} beside its start, {removed:.2?} beside its end",
        begun.elapsed()
    );
    let most = 2 * usual + Duration::from_secs(1);
    assert!(given < most && removed < most, "{usual:?} before, {given:?} and {removed:?} beside it");
    let own = files.div_ceil(IN_ONE) + traps(&data).len() + 1;
    assert_eq!(std::fs::read_dir(&data).expect("the volume").count(), own, "the volume's own stay");
    assert_eq!(depth(&data), DEEP, "whole");
    // Too deep for whoever takes the bed away.
    let removed = std::process::Command::new("rm").arg("-rf").arg(data.join("d")).status().expect("rm");
    assert!(removed.success());
}
