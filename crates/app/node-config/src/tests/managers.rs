//! Managers in processes of their own, by flag and by file.

use std::time::Duration;

use super::flags::parsed;
use crate::managers::{RemoteManager, WhenAway};
use crate::{ConfigErrors, Configured, configure};

fn by_file(text: &str, line: &[&str]) -> Result<Configured, ConfigErrors> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bosun.yaml");
    std::fs::write(&file, text).unwrap();
    let file = format!("--bosun-config={}", file.display());
    let line: Vec<&str> = line.iter().copied().chain([file.as_str()]).collect();
    configure(&parsed(&line)).map_err(|mut e| {
        let folder = format!("{}/", folder.path().display());
        e.errors.iter_mut().for_each(|e| e.origin = e.origin.replace(&folder, ""));
        e
    })
}

fn probes(remote: &str, when_away: WhenAway, seconds: u64) -> Option<RemoteManager> {
    let remote = model::unix_address::UnixAddress::parse(remote).unwrap();
    Some(RemoteManager { remote, when_away, probation: Duration::from_secs(seconds) })
}

#[test]
fn a_flag_names_a_manager_and_what_happens_while_it_is_away() {
    for (flag, when_away, seconds) in [
        ("--manager=probes=unix:///run/acme/p.sock", WhenAway::Builtin, 60),
        ("--manager=probes=unix:///run/acme/p.sock,whenAway=hold", WhenAway::Hold, 60),
        ("--manager=probes=unix:///run/acme/p.sock,probation=1m30s,whenAway=fail", WhenAway::Fail, 90),
    ] {
        let managers = configure(&parsed(&[flag])).unwrap().managers;
        assert_eq!(managers.get("probes").cloned(), probes("unix:///run/acme/p.sock", when_away, seconds), "{flag}");
    }
    assert!(configure(&parsed(&[])).unwrap().managers.is_empty());
}

#[test]
fn the_file_says_the_same_and_a_flag_wins() {
    let text = "managers:\n  probes:\n    remote: unix:///run/a.sock\n    whenAway: hold\n    probation: 10s\n";
    let managers = by_file(text, &[]).unwrap().managers;
    assert_eq!(managers.get("probes").cloned(), probes("unix:///run/a.sock", WhenAway::Hold, 10));
    let managers = by_file(text, &["--manager=probes=unix:///run/b.sock"]).unwrap().managers;
    assert_eq!(managers.get("probes").cloned(), probes("unix:///run/b.sock", WhenAway::Builtin, 60));
    for nothing in ["", "managers:\n", "managers: {}\n"] {
        assert!(by_file(nothing, &[]).unwrap().managers.is_empty(), "{nothing:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_place_value_reason_and_what_is_allowed() {
    let form = "(allowed: NAME=unix:///PATH[,whenAway=builtin|hold|fail][,probation=60s])";
    for (flag, said) in [
        ("--manager=probes", format!(r#"--manager: "probes": names no address {form}"#)),
        (
            "--manager=probes=unix:///a,hold",
            format!(r#"--manager: "probes=unix:///a,hold": has a part without '=' {form}"#),
        ),
        (
            "--manager=probe=unix:///a",
            r#"--manager: "probe": is no manager that may run elsewhere; did you mean probes? (allowed: images, probes, status, volumes)"#
                .to_owned(),
        ),
        (
            "--manager=probes=/a",
            r#"--manager: remote: "/a": only unix sockets are spoken to (allowed: unix:///absolute/path)"#.to_owned(),
        ),
        (
            "--manager=probes=unix:///a,whenAway=never",
            r#"--manager: whenAway: "never": is none of the words for it (allowed: builtin, hold, fail)"#.to_owned(),
        ),
        (
            "--manager=probes=unix:///a,probation=2h",
            r#"--manager: probation: "2h": is out of range (allowed: 0s to 1h, as in 60s or 1m30s)"#.to_owned(),
        ),
        (
            "--manager=probes=unix:///a,trust=1",
            r#"--manager: trust: "1": unknown field (allowed: remote, whenAway, probation)"#.to_owned(),
        ),
    ] {
        let errors = configure(&parsed(&[flag])).unwrap_err();
        assert_eq!(errors.to_string(), said);
    }
    let text = "managers:\n  probes:\n    whenAway: 7\n    probation: soon\n  pods: {}\n";
    let said = by_file(text, &[]).unwrap_err().to_string();
    for line in [
        "bosun.yaml: managers.probes.remote: must be given (allowed: unix:///absolute/path)",
        "bosun.yaml: managers.probes.whenAway: 7: is none of the words for it (allowed: builtin, hold, fail)",
        "bosun.yaml: managers.probes.probation: \"soon\": ",
        "bosun.yaml: managers.pods: \"pods\": is no manager that may run elsewhere (allowed: images, probes, status, volumes)",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    for (text, said) in [
        ("manager: {}", "bosun.yaml: manager: {}: unknown field (allowed: managers)"),
        ("managers: []", "bosun.yaml: managers: []: must be a mapping of managers"),
        ("- 1", "bosun.yaml: [1]: must be a mapping of field names to values"),
    ] {
        assert_eq!(by_file(text, &[]).unwrap_err().to_string(), said);
    }
}
