//! Ids for the users of pods, with the numbers of a kubelet's own rules.

use model::PodUid;
use model::userns::UserNamespace;
use proptest::prelude::*;

use crate::userns::{Holders, IdRange, default_ids, file, parse_ids};

const BLOCK: u32 = 65_536;

fn ids(host_id: u32, length: u32) -> UserNamespace {
    UserNamespace { host_id, length }
}

fn uid(name: &str) -> PodUid {
    PodUid::from(name)
}

#[test]
fn a_range_is_made_of_whole_blocks_beyond_the_first_enough_for_all_pods() {
    let least = 110 * BLOCK;
    for (first, length, per_pod, said) in [
        (BLOCK, least, BLOCK, ""),
        (2 * BLOCK, 2 * least, 2 * BLOCK, ""),
        (default_ids(BLOCK).0, default_ids(BLOCK).1, BLOCK, ""),
        (default_ids(1 << 24).0, default_ids(1 << 24).1, 1 << 24, ""),
        (BLOCK, least, 1000, "length 1000 is not a multiple of 65536"),
        (BLOCK, least, 0, "length 0 is not a multiple of 65536"),
        (BLOCK + 1, least, BLOCK, "ID 65537 is not a multiple of 65536"),
        (0, least, BLOCK, "ID 0 must be greater or equal to 65536"),
        (BLOCK, least + 1, BLOCK, "IDs length 7208961 is not a multiple of 65536"),
        (BLOCK, least - BLOCK, BLOCK, "not enough to support 110 pods"),
        (1 << 31, 1 << 31, BLOCK, ""),
        ((1 << 31) + BLOCK, 1 << 31, BLOCK, "end beyond the last id"),
    ] {
        let made = IdRange::new((first, length), per_pod, 110);
        match made {
            Ok(_) => assert_eq!(said, "", "{first} {length} {per_pod}"),
            Err(e) => assert!(!said.is_empty() && e.contains(said), "{first} {length} {per_pod}: {e}"),
        }
    }
}

#[test]
fn one_line_names_the_ids_of_the_host() {
    for (said, expected) in [
        ("0: kubelet 65536 2147483648\n", Ok((65_536, 2_147_483_648))),
        ("0: kubelet 65536 65536", Ok((65_536, 65_536))),
        ("", Err("invalid line")),
        ("0: kubelet 65536", Err("invalid line")),
        ("0: kubelet 65536 1 2", Err("invalid line")),
        ("0: kubelet 65536 65536\n1: kubelet 262144 65536\n", Err("must contain only one line")),
        ("0: kubelet x 65536", Err("error parsing line")),
        ("0: kubelet 65536 4294967296", Err("error parsing line")),
        ("0: kubelet -1 65536", Err("error parsing line")),
    ] {
        match (parse_ids(said), expected) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{said:?}"),
            (Err(e), Err(part)) => assert!(e.contains(part), "{said:?}: {e}"),
            (found, wanted) => panic!("{said:?}: {found:?}, not {wanted:?}"),
        }
    }
}

#[test]
fn the_file_of_a_pod_is_a_kubelets_and_one_that_is_not_is_named() {
    let text = r#"{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}"#;
    assert_eq!(String::from_utf8(file(&ids(131_072, BLOCK))).unwrap(), text);
    let range = IdRange::new(default_ids(BLOCK), BLOCK, 110).unwrap();
    let read = |text: &str| {
        let mut all = Holders::default();
        all.read(&uid("u1"), text.as_bytes());
        assert!(all.has(&uid("u1")));
        all.assign(&uid("u1"), &range, 7)
    };
    assert_eq!(read(text), Ok(ids(131_072, BLOCK)));
    let other_gid = text.replacen("131072", "196608", 1);
    for (broken, said) in [
        ("", "invalid user namespace mappings file: "),
        ("{", "invalid user namespace mappings file: "),
        ("{}", "no more than one mapping allowed."),
        (&text.replace("0,", "1,"), "UID 0 must be mapped"),
        (&other_gid, "GID and UID mapping should be identical"),
        (&text.replace("65536", "1000"), "wrong user namespace length 1000"),
        (&text.replace("131072", "0"), "wrong user namespace offset specified 0"),
        (&text.replace("131072", "4294967295"), "wrong user namespace offset specified 4294967295"),
    ] {
        let e = read(broken).unwrap_err();
        assert!(e.starts_with("user namespace: invalid user namespace") && e.contains(said), "{broken}: {e}");
    }
}

#[test]
fn ids_are_kept_apart_and_given_again_when_they_are_free() {
    let range = IdRange::new((BLOCK, 3 * BLOCK), BLOCK, 3).unwrap();
    let mut all = Holders::default();
    assert_eq!(all.assign(&uid("a"), &range, 1), Ok(ids(2 * BLOCK, BLOCK)));
    assert_eq!(all.assign(&uid("a"), &range, 2), Ok(ids(2 * BLOCK, BLOCK)), "what it has already");
    assert_eq!(all.assign(&uid("b"), &range, 1), Ok(ids(3 * BLOCK, BLOCK)), "the next one that is free");
    assert_eq!(all.assign(&uid("c"), &range, 4), Ok(ids(BLOCK, BLOCK)), "from the beginning");
    let full = "create user namespace: could not find an empty slot to allocate a user namespace";
    assert_eq!(all.assign(&uid("d"), &range, 0), Err(full.to_owned()));
    all.release(&uid("a"));
    assert_eq!(all.assign(&uid("d"), &range, 0), Ok(ids(2 * BLOCK, BLOCK)));
}

#[test]
fn what_other_pods_have_is_taken_whatever_its_size() {
    let range = IdRange::new((2 * BLOCK, 4 * BLOCK), 2 * BLOCK, 2).unwrap();
    let mut all = Holders::default();
    // Of a node that gave out smaller ones, and of one that gave out others.
    all.read(&uid("small"), &file(&ids(3 * BLOCK, BLOCK)));
    all.read(&uid("outside"), &file(&ids(64 * BLOCK, BLOCK)));
    all.read(&uid("below"), &file(&ids(BLOCK, BLOCK)));
    assert_eq!(all.assign(&uid("small"), &range, 0), Ok(ids(3 * BLOCK, BLOCK)));
    assert_eq!(all.assign(&uid("new"), &range, 0), Ok(ids(4 * BLOCK, 2 * BLOCK)));
    assert!(all.assign(&uid("newer"), &range, 0).is_err());
}

#[test]
fn nothing_is_given_out_while_it_is_not_known_what_a_pod_has() {
    let range = IdRange::new(default_ids(BLOCK), BLOCK, 110).unwrap();
    let mut all = Holders::default();
    all.read(&uid("a"), &file(&ids(BLOCK, BLOCK)));
    all.read(&uid("b"), b"?");
    assert_eq!(all.assign(&uid("a"), &range, 0), Ok(ids(BLOCK, BLOCK)));
    let e = all.assign(&uid("c"), &range, 0).unwrap_err();
    assert!(e.starts_with("create user namespace: which ids pod \"b\" has is not known (invalid"), "{e}");
    all.release(&uid("b"));
    all.read(&uid("d"), &file(&ids(BLOCK, 2 * BLOCK)));
    let e = all.assign(&uid("d"), &range, 0).unwrap_err();
    assert_eq!(e, "user namespace: range picked for pod \"d\" already taken by \"a\"");
    let c = all.assign(&uid("c"), &range, 1).unwrap();
    assert!(!c.overlaps(&ids(BLOCK, 2 * BLOCK)), "{c:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Assign(u8, u32),
    Release(u8),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..12, any::<u32>()).prop_map(|(pod, random)| Step::Assign(pod, random)),
        2 => (0_u8..12).prop_map(Step::Release),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn no_id_is_ever_one_of_two_pods(steps in prop::collection::vec(step(), 1..80)) {
        let range = IdRange::new((BLOCK, 8 * BLOCK), BLOCK, 8).unwrap();
        let mut all = Holders::default();
        let mut files = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Assign(pod, random) => match all.assign(&uid(&pod.to_string()), &range, random) {
                    Ok(ids) => {
                        let known = *files.entry(pod).or_insert(ids);
                        prop_assert_eq!(known, ids);
                    }
                    Err(_) => prop_assert!(files.len() == 8 && !files.contains_key(&pod)),
                },
                Step::Release(pod) => {
                    files.remove(&pod);
                    all.release(&uid(&pod.to_string()));
                }
                Step::Restart => {
                    all = Holders::default();
                    files.iter().for_each(|(pod, ids)| all.read(&uid(&pod.to_string()), &file(ids)));
                }
            }
            let given: Vec<_> = files.values().collect();
            for (i, one) in given.iter().enumerate() {
                prop_assert!(given[i + 1..].iter().all(|other| !one.overlaps(other)));
            }
        }
    }
}
