//! Command lines, environments, users, capabilities.

use cri_api::v1;
use serde_json::json;

use super::fixture::Fixture;

type Words = &'static [&'static str];

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|w| (*w).to_owned()).collect()
}

#[test]
fn the_command_line_follows_dockers_rules() {
    let rows: &[[Words; 5]] = &[
        // command, args, image entrypoint, image cmd -> line
        [&[], &[], &["/e"], &["c"], &["/e", "c"]],
        [&[], &["a"], &["/e"], &["c"], &["/e", "a"]],
        [&["/x"], &[], &["/e"], &["c"], &["/x"]],
        [&["/x"], &["a"], &["/e"], &["c"], &["/x", "a"]],
        [&[], &[], &[""], &["/c"], &["/c"]],
        [&[], &[], &[], &["/c"], &["/c"]],
    ];
    for [command, args, entrypoint, cmd, line] in rows {
        let f = Fixture::with(|f| {
            (f.config.command, f.config.args) = (words(command), words(args));
            (f.image.entrypoint, f.image.cmd) = (words(entrypoint), words(cmd));
        });
        assert_eq!(f.json()["process"]["args"], json!(line), "{command:?} {args:?} {entrypoint:?} {cmd:?}");
    }
    assert_eq!(Fixture::with(|f| f.config.command.clear()).error(), "no command specified");
}

#[test]
fn later_values_of_the_environment_replace_earlier_ones() {
    let pair = |k: &str, v: &str| v1::KeyValue { key: k.into(), value: v.as_bytes().to_vec() };
    let f = Fixture::with(|f| {
        f.config.tty = true;
        f.image.env = words(&["PATH=/image", "A=1", "B=2"]);
        f.config.envs = vec![pair("B", "three"), pair("C", "x=y"), pair("HOSTNAME", "mine")];
    });
    let want = ["PATH=/image", "TERM=xterm", "HOSTNAME=mine", "A=1", "B=three", "C=x=y"];
    assert_eq!(f.json()["process"]["env"], json!(want));
    let f = Fixture::with(|f| f.sandbox.hostname = "pod-1".into());
    assert_eq!(f.json()["process"]["env"][1], "HOSTNAME=pod-1");
    assert_eq!(Fixture::default().json()["process"]["env"][1], "HOSTNAME=node-1");
    let f = Fixture::with(|f| f.config.envs = vec![v1::KeyValue { key: "A".into(), value: vec![0xff] }]);
    assert_eq!(f.error(), "the value of environment variable \"A\" is not UTF-8");
}

#[test]
fn the_working_directory_is_the_configs_then_the_images_then_the_root() {
    for (config, image, cwd) in [("/c", "/i", "/c"), ("", "/i", "/i"), ("", "", "/")] {
        let f = Fixture::with(|f| (f.config.working_dir, f.image.working_dir) = (config.into(), image.into()));
        assert_eq!(f.json()["process"]["cwd"], cwd);
    }
}

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n# a comment\nbroken:x\nweb:x:1000:1001:::\n";
const GROUP: &str = "root:x:0:\nweb:x:1001:\nlogs:x:50:other,web\ndisk:x:6:root\n";

#[test]
fn users_come_from_config_image_and_files() {
    struct Row(
        &'static str,
        Option<i64>,
        Option<i64>,
        &'static str,
        &'static [i64],
        bool,
        Result<(u32, u32, &'static [u32]), &'static str>,
    );
    let rows = [
        // name, uid, gid of the config; user of the image; more groups; strict -> uid, gid, groups
        Row("", None, None, "", &[], false, Ok((0, 0, &[0, 6]))),
        Row("", None, None, "web", &[], false, Ok((1000, 1001, &[50, 1001]))),
        Row("", None, None, "1000", &[7], false, Ok((1000, 1001, &[7, 50, 1001]))),
        Row("", None, None, "web:logs", &[], true, Ok((1000, 50, &[50]))),
        Row("", None, None, "77:88", &[], false, Ok((77, 88, &[88]))),
        Row("", None, None, "77", &[], false, Ok((77, 0, &[0]))),
        Row("web", Some(5), None, "root", &[9], true, Ok((1000, 1001, &[9, 1001]))),
        Row("", Some(1000), Some(2000), "root", &[], false, Ok((1000, 2000, &[50, 2000]))),
        Row("", Some(0), None, "web", &[], true, Ok((0, 0, &[0]))),
        Row("nobody", None, None, "", &[], false, Err("no user \"nobody\" in the image's /etc/passwd")),
        Row("", None, None, "web:none", &[], false, Err("no group \"none\" in the image's /etc/group")),
        Row("", None, Some(5), "", &[], false, Err("user group is specified without user")),
        Row("", Some(-1), None, "", &[], false, Err("-1 is no user or group id")),
        Row("", Some(1 << 32), None, "", &[], false, Err("4294967296 is no user or group id")),
        Row("", None, None, "", &[1 << 31], false, Err("2147483648 is no user or group id")),
    ];
    for Row(name, uid, gid, image, more, strict, want) in rows {
        let f = Fixture::with(|f| {
            (f.users.passwd, f.users.group) = (PASSWD.into(), GROUP.into());
            f.image.user = image.into();
            let s = f.security();
            s.run_as_username = name.into();
            s.run_as_user = uid.map(|value| v1::Int64Value { value });
            s.run_as_group = gid.map(|value| v1::Int64Value { value });
            s.supplemental_groups = more.to_vec();
            s.supplemental_groups_policy = i32::from(strict);
        });
        match want {
            Ok((uid, gid, groups)) => {
                let user = json!({"uid": uid, "gid": gid, "additionalGids": groups});
                assert_eq!(f.json()["process"]["user"], user, "{name} {image} {more:?}");
            }
            Err(text) => assert_eq!(f.error(), text),
        }
    }
    let f = Fixture::with(|f| f.security().supplemental_groups_policy = 7);
    assert_eq!(f.error(), "supplemental groups policy 7 is not known");
}

fn bounding(f: &Fixture) -> Vec<String> {
    let sets = f.json()["process"]["capabilities"].clone();
    let mut names: Vec<String> = serde_json::from_value(sets["bounding"].clone()).expect("names");
    names.sort();
    names
}

#[test]
fn capabilities_are_added_and_dropped_one_by_one_after_all() {
    let rows: &[(Words, Words, usize, Words, Words)] = &[
        // add, drop -> how many, some that are there, some that are not
        (&[], &[], 14, &["CAP_CHOWN", "CAP_NET_RAW", "CAP_AUDIT_WRITE"], &["CAP_SYS_ADMIN"]),
        (&["net_admin"], &[], 15, &["CAP_NET_ADMIN"], &[]),
        (&["CAP_NET_ADMIN"], &["CHOWN"], 14, &["CAP_NET_ADMIN"], &["CAP_CHOWN"]),
        (&[], &["ALL"], 0, &[], &[]),
        (&["NET_BIND_SERVICE"], &["all"], 1, &["CAP_NET_BIND_SERVICE"], &[]),
        (&["ALL"], &["KILL"], 2, &["CAP_CHOWN", "CAP_SYS_ADMIN"], &["CAP_KILL"]),
        (&["KILL"], &["KILL"], 13, &[], &["CAP_KILL"]),
    ];
    for (add, drop, count, there, gone) in rows {
        let f = Fixture::with(|f| {
            let capabilities = f.security().capabilities.get_or_insert_default();
            capabilities.add_capabilities = words(add);
            capabilities.drop_capabilities = words(drop);
        });
        let names = bounding(&f);
        assert_eq!(names.len(), *count, "{add:?} {drop:?}: {names:?}");
        assert!(there.iter().all(|n| names.iter().any(|m| m == n)), "{add:?} {drop:?}: {names:?}");
        assert!(!gone.iter().any(|n| names.iter().any(|m| m == n)), "{add:?} {drop:?}: {names:?}");
        let sets = &f.json()["process"]["capabilities"];
        assert_eq!((&sets["inheritable"], &sets["ambient"]), (&json!([]), &json!([])));
    }
    let f = Fixture::with(|f| f.security().capabilities.get_or_insert_default().add_capabilities = words(&["FLY"]));
    assert_eq!(f.error(), "unknown capability \"FLY\"");
}

#[test]
fn ambient_capabilities_are_those_that_are_held() {
    let f = Fixture::with(|f| {
        let capabilities = f.security().capabilities.get_or_insert_default();
        capabilities.add_ambient_capabilities = words(&["CHOWN", "SYS_ADMIN"]);
    });
    assert_eq!(f.json()["process"]["capabilities"]["ambient"], json!(["CAP_CHOWN"]));
}

#[test]
fn a_privileged_container_has_all_there_is_but_needs_such_a_pod() {
    let f = Fixture::with(|f| {
        f.privileged();
        let s = f.security();
        (s.masked_paths, s.readonly_paths) = (words(&["/proc/kcore"]), words(&["/proc/sys"]));
    });
    assert_eq!(bounding(&f), words(&["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"]));
    let json = f.json();
    assert_eq!((&json["linux"]["maskedPaths"], &json["linux"]["readonlyPaths"]), (&json!([]), &json!([])));
    assert_eq!(json["linux"]["resources"]["devices"][1], json!({"allow": true, "access": "rwm"}));
    let plain = Fixture::with(|f| f.security().privileged = true);
    assert_eq!(plain.error(), "no privileged container allowed in sandbox");
}

#[test]
fn small_values_of_the_process() {
    let f = Fixture::with(|f| {
        f.security().no_new_privs = true;
        f.security().readonly_rootfs = true;
        f.resources().oom_score_adj = -998;
        f.node.lowest_oom_score_adj = Some(-500);
        f.node.rlimits = vec![(oci_spec::runtime::PosixRlimitType::RlimitNofile, 10, 20)];
    });
    let json = f.json();
    assert_eq!(json["process"]["noNewPrivileges"], true);
    assert_eq!(json["root"], json!({"path": "rootfs", "readonly": true}));
    assert_eq!(json["process"]["oomScoreAdj"], -500);
    assert_eq!(json["process"]["rlimits"], json!([{"type": "RLIMIT_NOFILE", "soft": 10, "hard": 20}]));
    let plain = Fixture::default().json();
    assert_eq!((&plain["process"]["noNewPrivileges"], &plain["process"]["oomScoreAdj"]), (&json!(false), &json!(0)));
    assert!(plain["process"].get("rlimits").is_none());
    assert_eq!(plain["annotations"]["io.kubernetes.cri.sandbox-id"], "s1");
    assert_eq!(plain["annotations"]["io.kubernetes.cri.container-name"], "main");
}
