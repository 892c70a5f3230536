use cri_api::v1;
use fakes::LinuxFs;

use super::{Source, log_end};

struct Case {
    dir: tempfile::TempDir,
    status: v1::ContainerStatus,
}

/// An ended container with a message path; `file` and `log` are what the two files hold.
fn case(policy: &str, file: Option<&str>, log: Option<&str>) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (name, content) in [("message", file), ("0.log", log)] {
        if let Some(content) = content {
            std::fs::write(at(name), content).unwrap();
        }
    }
    let annotations = [
        ("io.kubernetes.container.terminationMessagePath", "/dev/termination-log"),
        ("io.kubernetes.container.terminationMessagePolicy", policy),
    ];
    let mount =
        v1::Mount { container_path: "/dev/termination-log".to_owned(), host_path: at("message"), ..Default::default() };
    let status = v1::ContainerStatus {
        exit_code: 1,
        reason: "Error".to_owned(),
        log_path: at("0.log"),
        mounts: vec![mount],
        annotations: annotations.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        ..Default::default()
    };
    Case { dir, status }
}

const LOG: &str = "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stderr F two\n";

#[test]
fn each_source_has_its_turn() {
    const FALLBACK: &str = "FallbackToLogsOnError";
    type Change = fn(&mut v1::ContainerStatus);
    let same: Change = |_| ();
    let rows: Vec<(&str, Case, Change, &str)> = vec![
        ("the file", case("File", Some("bye"), Some(LOG)), same, "bye"),
        ("empty file", case("File", Some(""), Some(LOG)), same, ""),
        ("no file", case("File", None, Some(LOG)), same, ""),
        ("file before log", case(FALLBACK, Some("bye"), Some(LOG)), same, "bye"),
        ("log when the file is empty", case(FALLBACK, Some(""), Some(LOG)), same, "one\ntwo\n"),
        ("log when there is no file", case(FALLBACK, None, Some(LOG)), same, "one\ntwo\n"),
        ("no log on success", case(FALLBACK, None, Some(LOG)), |s| s.exit_code = 0, ""),
        ("no log when it never ran", case(FALLBACK, None, Some(LOG)), |s| s.reason = "ContainerCannotRun".into(), ""),
        ("what the runtime said goes first", case("File", Some("bye"), None), |s| s.message = "oom".into(), "oom: bye"),
        ("and stands alone", case("File", None, None), |s| s.message = "oom".into(), "oom"),
        ("no mount at that path", case("File", Some("bye"), None), |s| s.mounts.clear(), ""),
        ("no path", case("File", Some("bye"), None), |s| s.annotations.clear(), ""),
    ];
    for (name, mut case, change, want) in rows {
        change(&mut case.status);
        assert_eq!(Source::of(&case.status).read(&LinuxFs), want, "{name}");
    }
}

#[test]
fn only_the_end_of_a_long_file_is_taken() {
    let text = format!("{}end", "x".repeat(5000));
    let c = case("File", Some(&text), None);
    let message = Source::of(&c.status).read(&LinuxFs);
    assert_eq!(message.len(), 4096);
    assert!(message.ends_with("xend"));
}

#[test]
fn something_else_than_a_file_is_told() {
    let c = case("File", None, None);
    std::fs::create_dir(c.dir.path().join("message")).unwrap();
    assert!(Source::of(&c.status).read(&LinuxFs).contains("not a regular file"));
}

#[test]
fn a_link_to_elsewhere_gives_no_secret() {
    let c = case("FallbackToLogsOnError", None, Some(LOG));
    std::fs::write(c.dir.path().join("secret"), "of the host").unwrap();
    std::os::unix::fs::symlink("secret", c.dir.path().join("message")).unwrap();
    assert!(Source::of(&c.status).read(&LinuxFs).contains("not a regular file"));
}

#[test]
fn a_log_gives_its_last_80_lines_and_2048_bytes() {
    let line = |i: usize| format!("2026-01-01T00:00:00Z stdout F {i}\n");
    let many: String = (0..100).map(line).collect();
    let want: String = (20..100).map(|i| format!("{i}\n")).collect();
    assert_eq!(log_end(many.as_bytes(), false), want);
    let long = format!("2026-01-01T00:00:00Z stdout F {}\n", "y".repeat(3000));
    assert_eq!(log_end(long.as_bytes(), false).len(), 2048);
}

#[test]
fn partial_lines_are_joined_and_a_cut_one_is_content() {
    let text = "2026-01-01T00:00:00Z stdout P ab\n2026-01-01T00:00:00Z stdout F cd\nnonsense\n";
    assert_eq!(log_end(text.as_bytes(), false), "abcd\n");
    assert_eq!(log_end(b"rest of a line\n2026-01-01T00:00:00Z stdout F x\n", true), "rest of a line\nx\n");
}
