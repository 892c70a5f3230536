//! Ids for the users of pods, with the host's programs and the pods' files.

use contract::volume::{
    AssignUserNamespace, MakePodDirs, ReleaseUserNamespace, RemovePodDir, UnmountVolumes, VolumeError,
};
use fakes::Folder;
use fakes::files::{Errno, FileTrouble};
use model::PodUid;
use model::userns::UserNamespace;
use ports::host::{HostFs, ProgramEnd};
use volume_plan::userns::file;

use super::rig::{Bench, config, deps, host, with_bench};
use crate::{Config, IdRules};

const BLOCK: u32 = 65_536;

async fn assign(bench: &Bench, uid: &str) -> Result<UserNamespace, VolumeError> {
    bench.wiring.ask(MakePodDirs { uid: PodUid::from(uid) }).await??;
    bench.wiring.ask(AssignUserNamespace { uid: PodUid::from(uid) }).await?
}

/// As a worker ends its pod.
async fn end(bench: &Bench, host: &Folder, uid: &str) {
    bench.wiring.ask(UnmountVolumes { uid: PodUid::from(uid) }).await.unwrap().unwrap();
    assert!(host.exists(format!("pods/{uid}/userns")), "its processes may be left");
    bench.wiring.ask(ReleaseUserNamespace { uid: PodUid::from(uid) }).await.unwrap().unwrap();
}

/// A host with these answers to `getent` and both calls of `getsubids`.
fn host_says(answers: [(i32, &'static str); 3]) -> Folder {
    let host = host();
    host.disk.play_programs(move |_, line| {
        let (code, words) = match line {
            "getent passwd kubelet" => answers[0],
            "getsubids kubelet" => answers[1],
            "getsubids -g kubelet" => answers[2],
            other => panic!("{other}"),
        };
        ProgramEnd { code: Some(code), words: words.to_owned() }
    });
    host
}

#[test]
fn a_pod_keeps_its_ids_over_deaths_until_it_has_ended() {
    actor::testing::run(1, async |kernel| {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        let first = assign(&bench, "u1").await.unwrap();
        assert_eq!((first.length, first.host_id % BLOCK), (BLOCK, 0));
        assert_eq!(host.read("pods/u1/userns"), String::from_utf8(file(&first)).unwrap());
        assert_eq!(host.mode("pods/u1/userns"), 0o600);
        let second = assign(&bench, "u2").await.unwrap();
        assert!(!first.overlaps(&second));
        // Another daemon.
        let bench = Bench::start(&kernel, &host);
        assert_eq!((assign(&bench, "u1").await, assign(&bench, "u2").await), (Ok(first), Ok(second)));
        end(&bench, &host, "u1").await;
        assert!(!host.exists("pods/u1/userns") && host.exists("pods/u2/userns"));
        bench.wiring.ask(RemovePodDir { uid: PodUid::from("u2") }).await.unwrap().unwrap();
        assert!(!host.exists("pods/u2"));
    });
}

#[test]
fn with_room_for_one_pod_ids_come_free_when_it_ends_or_is_gone_from_the_disk() {
    actor::testing::run(1, async |kernel| {
        let host = host();
        let config = Config { ids: IdRules { per_pod: 1 << 31, max_pods: 1 }, ..config(&host) };
        let bench = Bench::with(&kernel, config, deps(&host));
        let only = assign(&bench, "u1").await.unwrap();
        let full = "create user namespace: could not find an empty slot to allocate a user namespace";
        assert_eq!(assign(&bench, "u2").await.unwrap_err().message, full);
        end(&bench, &host, "u1").await;
        assert_eq!(assign(&bench, "u2").await, Ok(only));
        // Somebody else removed it.
        host.disk.remove_file(&host.path("pods/u2/userns")).unwrap();
        assert_eq!(assign(&bench, "u3").await, Ok(only));
        assert_eq!(assign(&bench, "u2").await.unwrap_err().message, full);
    });
}

#[test]
fn the_host_says_which_ids_there_are() {
    let (there, ids) = ((0, "kubelet:x:999:999::/:/bin/false\n"), (0, "0: kubelet 2147483648 7208960\n"));
    for (answers, expected) in [
        ([there, ids, ids], Ok(1 << 31..(1 << 31) + 110 * BLOCK)),
        ([(2, ""), ids, ids], Ok(BLOCK..u32::MAX)),
        ([(1, "no"), ids, ids], Err("error looking for user \"kubelet\": no")),
        ([there, (1, "remote is down\n"), ids], Err("retrieving additional uids for user \"kubelet\": remote is down")),
        ([there, ids, (1, "")], Err("retrieving additional gids for user \"kubelet\"")),
        ([there, ids, (0, "0: kubelet 65536 7208960\n")], Err("mismatched subuids and subgids for user \"kubelet\"")),
        ([there, (0, ""), (0, "")], Err("invalid line")),
        ([there, (0, "0: kubelet 65536 65536"), (0, "0: kubelet 65536 65536")], Err("not enough to support 110 pods")),
    ] {
        actor::testing::run(1, async |kernel| {
            let host = host_says(answers);
            let bench = Bench::start(&kernel, &host);
            match (assign(&bench, "u1").await, &expected) {
                (Ok(given), Ok(range)) => assert!(range.contains(&given.host_id), "{answers:?}: {given:?}"),
                (Err(e), Err(said)) => assert!(e.message.contains(said), "{answers:?}: {e}"),
                (given, _) => panic!("{answers:?}: {given:?}"),
            }
            let asked = host.disk.program_calls().len();
            assign(&bench, "u2").await.ok();
            let again = host.disk.program_calls().len();
            // What was learnt is kept, a failure is asked about again.
            assert_eq!(again, if expected.is_ok() { 0 } else { asked }, "{answers:?}");
        });
    }
}

#[test]
fn a_file_that_cannot_be_used_holds_up_new_pods_alone_until_it_is_mended() {
    with_bench(async |bench, host| {
        let fine = UserNamespace { host_id: 8 * BLOCK, length: BLOCK };
        host.write("pods/u1/userns", file(&fine));
        host.write("pods/u2/userns", "?");
        assert_eq!(assign(&bench, "u1").await, Ok(fine));
        let e = assign(&bench, "u2").await.unwrap_err().message;
        assert!(e.starts_with("user namespace: invalid user namespace mappings file: "), "{e}");
        let e = assign(&bench, "u3").await.unwrap_err().message;
        assert!(e.starts_with("create user namespace: which ids pod \"u2\" has is not known"), "{e}");
        let ids = UserNamespace { host_id: BLOCK, length: BLOCK };
        host.write("pods/u2/userns", file(&ids));
        assert!(!assign(&bench, "u3").await.unwrap().overlaps(&ids));
        assert_eq!(assign(&bench, "u2").await, Ok(ids));
    });
}

#[test]
fn no_pod_has_ids_that_are_not_written_down() {
    with_bench(async |bench, host| {
        bench.wiring.ask(MakePodDirs { uid: PodUid::from("u1") }).await.unwrap().unwrap();
        host.disk.trouble(&host.path("pods/u1/userns"), FileTrouble::FailWrites(Errno::NoSpc));
        let e = assign(&bench, "u1").await.unwrap_err().message;
        assert!(e.starts_with("create user namespace: "), "{e}");
        host.disk.calm();
        let ids = assign(&bench, "u1").await.unwrap();
        assert_eq!(host.read("pods/u1/userns"), String::from_utf8(file(&ids)).unwrap());
    });
}
