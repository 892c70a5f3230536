//! Real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use ports::credential::{CredentialPlugin, PluginCall, PluginError};

use crate::ExecPlugins;

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plug");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    fn run(&self, call: PluginCall) -> Result<String, PluginError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let plugins = ExecPlugins::new(self.0.path());
        runtime.block_on(plugins.run(call)).map(|out| String::from_utf8(out).unwrap())
    }
}

fn call() -> PluginCall {
    PluginCall {
        name: "plug".into(),
        args: vec!["get".into(), "two words".into()],
        env: vec![("ASKED_BY".into(), "node".into())],
        stdin: b"{\"image\":\"i\"}".to_vec(),
        deadline: Duration::from_secs(30),
    }
}

#[test]
fn a_plugin_gets_its_request_arguments_and_variables_and_is_heard() {
    let folder = Folder::with("read -r line; echo \"$line $1 $2 $ASKED_BY ${PATH:+path}\"");
    assert_eq!(folder.run(call()).unwrap(), "{\"image\":\"i\"} get two words node path\n");
}

#[test]
fn failures_name_the_plugin_and_what_it_complained_of() {
    for (script, error) in [
        ("echo secret; echo 'no login' >&2; exit 3", "credential provider plugin plug: exit status 3: no login"),
        ("kill -9 $$", "credential provider plugin plug: signal 9: "),
    ] {
        assert_eq!(Folder::with(script).run(call()).unwrap_err().to_string(), error);
    }
    let missing = Folder::with("").run(PluginCall { name: "other".into(), ..call() }).unwrap_err();
    assert!(missing.to_string().starts_with("credential provider plugin other: No such file"), "{missing}");
    for name in ["", ".", "..", "../plug", "a/b"] {
        let e = Folder::with("").run(PluginCall { name: name.into(), ..call() }).unwrap_err();
        assert_eq!(e.to_string(), format!("{name:?} cannot be the name of a plugin"));
    }
}

#[test]
fn one_that_never_ends_is_killed() {
    let folder = Folder::with("echo $$ > \"$(dirname \"$0\")/pid\"; exec sleep 600");
    let began = Instant::now();
    let e = folder.run(PluginCall { deadline: Duration::from_secs(2), ..call() }).unwrap_err();
    assert_eq!(e.to_string(), "credential provider plugin plug: context deadline exceeded");
    assert!(began.elapsed() < Duration::from_secs(20));
    let pid = fs::read_to_string(folder.0.path().join("pid")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(" Z ") || !stat.contains("sleep"), "{stat}");
}

#[test]
fn one_that_reads_nothing_or_writes_without_end_does_no_harm() {
    let large = PluginCall { stdin: vec![b'x'; 1 << 20], ..call() };
    assert_eq!(Folder::with("echo answer").run(large).unwrap(), "answer\n");
    let e = Folder::with("head -c 5000000 /dev/zero").run(call()).unwrap_err();
    assert_eq!(e.to_string(), "credential provider plugin plug: wrote more than 4194304 bytes");
    let e = Folder::with("head -c 5000000 /dev/zero >&2; exit 1").run(call()).unwrap_err();
    assert!(e.to_string().len() < 20_000);
}
