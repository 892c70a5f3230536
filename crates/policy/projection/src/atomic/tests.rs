//! Plans, and what comes of them when they are cut off.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{Current, Entry, Step, dir_name, is_own, plan};
use crate::payload::{Payload, ProjectedFile};

const OLD: &str = "..2026_11_20_09_08_37.0000000001";
const NEW: &str = "..2026_11_20_10_00_00.0000000002";

fn wanted(files: &[(&str, &str)]) -> Payload {
    let file = |text: &str| ProjectedFile { data: text.into(), mode: 0o644, owner: None };
    files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
}

/// A volume in memory: entries of the root, and the files of each directory.
#[derive(Clone, Default, Debug, PartialEq)]
struct Disk {
    root: BTreeMap<String, Entry>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Disk {
    fn current(&self) -> Current {
        let mut now = Current { entries: self.root.clone(), files: BTreeMap::new() };
        if let Some(dir) = now.data_dir() {
            let below = self.files.iter().filter_map(|(p, c)| Some((p.strip_prefix(dir)?.strip_prefix('/')?, c)));
            now.files = below.map(|(p, c)| (p.to_owned(), c.clone())).collect();
        }
        now
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::MakeDir { path, .. } if !path.contains('/') => {
                assert!(self.root.insert(path.clone(), Entry::Dir).is_none())
            }
            Step::MakeDir { .. } | Step::GiveToGroup { .. } => {}
            Step::Write { path, file } => assert!(self.files.insert(path.clone(), file.data.clone()).is_none()),
            Step::Link { path, target } => {
                assert!(self.root.insert(path.clone(), Entry::Link(target.clone())).is_none(), "{path} is there");
            }
            Step::Rename { from, to } => {
                let entry = self.root.remove(from).unwrap();
                self.root.insert(to.clone(), entry);
            }
            Step::Remove { path } => drop(self.root.remove(path)),
            Step::RemoveDir { path } => {
                self.root.remove(path);
                self.files.retain(|p, _| !p.starts_with(&format!("{path}/")));
            }
        }
    }

    fn write(&mut self, payload: &Payload, dir: &str) -> usize {
        let steps = plan(payload, &self.current(), dir).unwrap();
        steps.iter().for_each(|s| self.apply(s));
        steps.len()
    }

    /// What a container reads, by the names that it sees.
    fn seen(&self) -> BTreeMap<String, String> {
        let now = self.current();
        let visible = |path: &str| {
            let first = path.split('/').next().unwrap();
            now.entries.get(first) == Some(&Entry::Link(format!("..data/{first}")))
        };
        let text = |c: &[u8]| String::from_utf8_lossy(c).into_owned();
        now.files.iter().filter(|(p, _)| visible(p)).map(|(p, c)| (p.clone(), text(c))).collect()
    }
}

fn text(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect()
}

#[test]
fn a_first_write_is_these_steps_in_this_order() {
    let mut file = wanted(&[("x/a", "1")]);
    file.get_mut("x/a").unwrap().mode = 0o400;
    let steps = plan(&file, &Current::default(), NEW).unwrap();
    let at = |path: &str| format!("{NEW}{path}");
    assert_eq!(
        steps,
        [
            Step::MakeDir { path: NEW.into(), mode: 0o755 },
            Step::MakeDir { path: at("/x"), mode: 0o755 },
            Step::Write { path: at("/x/a"), file: file["x/a"].clone() },
            Step::GiveToGroup { path: NEW.into() },
            Step::Link { path: "..data_tmp".into(), target: NEW.into() },
            Step::Rename { from: "..data_tmp".into(), to: "..data".into() },
            Step::Link { path: "x".into(), target: "..data/x".into() },
        ]
    );
}

#[test]
fn the_same_content_is_no_step() {
    let mut disk = Disk::default();
    let mut payload = wanted(&[("a", "1"), ("d/b", "2")]);
    disk.write(&payload, OLD);
    assert_eq!(plan(&payload, &disk.current(), NEW).unwrap(), []);
    payload.get_mut("a").unwrap().mode = 0o400;
    assert_eq!(plan(&payload, &disk.current(), NEW).unwrap(), [], "modes alone make no difference");
    let mut empty = Disk::default();
    assert!(empty.write(&Payload::new(), OLD) > 0, "a volume without files has its directory too");
    assert_eq!(empty.write(&Payload::new(), NEW), 0);
}

#[test]
fn changes_table() {
    let before: &[(&str, &str)] = &[("a", "1"), ("d/b", "2")];
    for (name, after) in [
        ("content", &[("a", "one"), ("d/b", "2")][..]),
        ("a file more", &[("a", "1"), ("c", "3"), ("d/b", "2")][..]),
        ("a file less", &[("a", "1")][..]),
        ("a file less in a directory", &[("a", "1"), ("d/b", "2"), ("d/c", "3")][..]),
        ("a directory where a file was", &[("a/b", "1")][..]),
        ("none left", &[][..]),
    ] {
        let mut disk = Disk::default();
        disk.write(&wanted(before), OLD);
        disk.write(&wanted(after), NEW);
        assert_eq!(disk.seen(), text(after), "{name}");
        assert!(!disk.root.contains_key(OLD), "{name}: the old directory goes");
        let names: Vec<_> = disk.root.keys().filter(|n| !n.starts_with("..")).cloned().collect();
        let mut expected: Vec<_> = after.iter().map(|(p, _)| p.split('/').next().unwrap().to_owned()).collect();
        expected.dedup();
        assert_eq!(names, expected, "{name}");
    }
}

#[test]
fn a_write_that_is_cut_off_anywhere_shows_old_or_new_and_is_finished_by_the_next() {
    let (before, after) = ([("a", "1"), ("gone", "x")], [("a", "2"), ("b", "3")]);
    let mut disk = Disk::default();
    disk.write(&wanted(&before), OLD);
    let steps = plan(&wanted(&after), &disk.current(), NEW).unwrap();
    for cut in 0..=steps.len() {
        let mut broken = disk.clone();
        steps[..cut].iter().for_each(|s| broken.apply(s));
        let a = broken.seen()["a"].clone();
        assert!(a == "1" || a == "2", "{cut}");
        broken.write(&wanted(&after), "..2026_11_20_11_00_00.0000000003");
        assert_eq!(broken.seen(), text(&after), "{cut}");
        let left: Vec<_> = broken.root.keys().filter(|n| n.starts_with("..2")).collect();
        assert_eq!(left.len(), 1, "{cut}: {left:?}");
        assert!(!broken.root.contains_key("..data_tmp"), "{cut}");
    }
}

#[test]
fn links_of_users_that_point_elsewhere_are_set_right_and_what_is_not_ours_stays() {
    let mut disk = Disk::default();
    disk.write(&wanted(&[("a", "1")]), OLD);
    disk.root.insert("a".into(), Entry::Link("/etc/passwd".into()));
    disk.root.insert("mounted-here".into(), Entry::Dir);
    disk.root.insert("foreign".into(), Entry::Link("elsewhere".into()));
    disk.write(&wanted(&[("a", "1")]), NEW);
    assert_eq!(disk.root["a"], Entry::Link("..data/a".into()));
    assert!(disk.root.contains_key(OLD) && disk.root.contains_key("mounted-here") && disk.root.contains_key("foreign"));
}

#[test]
fn paths_are_cleaned_and_refused() {
    let mut disk = Disk::default();
    disk.write(&wanted(&[("./d//a", "1")]), OLD);
    assert_eq!(disk.seen(), text(&[("d/a", "1")]));
    for (path, error) in [
        ("../a", "invalid path: must not contain '..': ../a"),
        ("..a", "invalid path: must not start with '..': ..a"),
        ("", "invalid path: must not be empty: \"\""),
    ] {
        let e = plan(&wanted(&[(path, "x")]), &Current::default(), NEW).unwrap_err();
        assert_eq!(e.to_string(), error);
    }
    let e = plan(&wanted(&[("a", "x"), ("a/b", "y")]), &Current::default(), NEW).unwrap_err();
    assert_eq!(e.to_string(), "invalid path: a/b is below the file a");
}

#[test]
fn what_an_atomic_writer_makes_is_told_from_what_others_make() {
    let mut disk = Disk::default();
    disk.write(&wanted(&[("a", "1"), ("d/b", "2")]), OLD);
    for (name, entry) in &disk.root {
        assert!(is_own(name, entry), "{name}");
    }
    for (name, entry) in [
        ("a", Entry::Other),
        ("..data", Entry::Dir),
        ("..data", Entry::Other),
        ("..x", Entry::Dir),
        ("d", Entry::Dir),
        ("a", Entry::Link("/etc/passwd".into())),
        ("a", Entry::Link("..database/a".into())),
    ] {
        assert!(!is_own(name, &entry), "{name} {entry:?}");
    }
}

#[test]
fn directories_are_named_after_the_time() {
    let now = Timestamp::from_secs(1_795_165_717);
    assert_eq!(dir_name(now, 42), "..2026_11_20_09_08_37.0000000042");
    assert!(super::is_ours(&dir_name(now, 42)));
    assert!(!super::is_ours("..data") && !super::is_ours("2026_a") && !super::is_ours("..20x6_"));
}
