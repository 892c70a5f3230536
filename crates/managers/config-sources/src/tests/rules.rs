//! The rules of the folder (pod-lifecycle 1.5 and its edge cases, interfaces 11.1).

use std::sync::Arc;

use ports::watch::Change;

use super::rig::{accepted, manifest, refused, with_rig};

#[test]
fn an_empty_folder_delivers_an_empty_set() {
    with_rig(|rig| async move {
        rig.begin("").await;
        assert_eq!(rig.set(), Vec::<String>::new());
        assert!(rig.view.get().delivered);
        assert_eq!(rig.view.get().error, None);
    });
}

#[test]
fn a_missing_folder_delivers_an_empty_set_and_is_found_within_a_second_when_it_is_made() {
    with_rig(|rig| async move {
        rig.begin("later").await;
        assert_eq!(rig.set(), Vec::<String>::new());
        assert!(rig.view.get().delivered);
        assert!(rig.view.get().error.as_ref().is_some_and(|e| e.ends_with("later does not exist")));
        rig.dir.dir("later");
        rig.write("later/a.yaml", manifest("a", "x:1"));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        rig.work().await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert_eq!(rig.view.get().error, None);
        rig.write("later/b.yaml", manifest("b", "x:1"));
        rig.written("b.yaml").await;
        assert_eq!(rig.set().len(), 2);
    });
}

#[test]
fn a_folder_that_is_taken_away_removes_its_pods() {
    with_rig(|rig| async move {
        rig.dir.dir("d");
        rig.write("d/a.yaml", manifest("a", "x:1"));
        rig.begin("d").await;
        assert_eq!(rig.set().len(), 1);
        rig.dir.rename("d", "e");
        rig.event(Change::PathGone).await;
        assert_eq!(rig.set(), Vec::<String>::new());
        rig.dir.rename("e", "d");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        rig.work().await;
        assert_eq!(rig.set().len(), 1);
    });
}

#[test]
fn every_name_is_read_but_hidden_ones() {
    with_rig(|rig| async move {
        for (file, pod) in
            [("a.yaml", "a"), ("b.yaml.bak", "b"), ("c~", "c"), ("README", "d"), (".e.yaml", "e"), (".a.yaml.swp", "f")]
        {
            rig.write(file, manifest(pod, "x:1"));
        }
        rig.begin("").await;
        let all = ["default/a-node-a x:1", "default/b-node-a x:1", "default/c-node-a x:1", "default/d-node-a x:1"];
        assert_eq!(rig.set(), all);
        let before = rig.sets.count();
        rig.written(".e.yaml").await;
        assert_eq!((rig.set().len(), rig.sets.count()), (4, before));
        assert_eq!(rig.manifests().len(), 4);
    });
}

#[test]
fn folders_are_skipped_links_are_followed_and_dead_links_are_told() {
    with_rig(|rig| async move {
        rig.write("/elsewhere/real", manifest("linked", "x:1"));
        rig.dir.dir("sub");
        rig.write("sub/hidden.yaml", manifest("inner", "x:1"));
        rig.dir.link("/elsewhere/real", "link.yaml");
        rig.dir.link("/nonexistent", "dead.yaml");
        rig.begin("").await;
        assert_eq!(rig.set(), ["default/linked-node-a x:1"]);
        assert_eq!(refused(rig.state("sub")).0, ["is a folder; folders in a folder are not searched"]);
        assert_eq!(refused(rig.state("dead.yaml")).0, ["is a link to a file that is not there"]);
        assert_eq!(rig.events().len(), 1, "the folder is no event: {:?}", rig.events());
        rig.dir.link("/elsewhere/real", "other.yaml");
        rig.event(Change::Created("other.yaml".into())).await;
        assert!(rig.state("other.yaml").is_some(), "a link is complete when it is made");
    });
}

#[test]
fn a_written_a_moved_and_a_removed_file_change_the_set_at_once() {
    with_rig(|rig| async move {
        rig.begin("").await;
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert_eq!(rig.state("a.yaml"), accepted("default/a-node-a"));
        rig.dir.rename("a.yaml", "b.yaml");
        rig.gone("a.yaml").await;
        rig.written("b.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        rig.dir.remove("b.yaml");
        rig.gone("b.yaml").await;
        assert_eq!(rig.set(), Vec::<String>::new());
        assert!(rig.manifests().is_empty());
    });
}

#[test]
fn a_file_that_is_made_is_read_when_its_writer_is_done() {
    with_rig(|rig| async move {
        rig.begin("").await;
        rig.write("a.yaml", "apiVersion: v1\nki");
        rig.event(Change::Created("a.yaml".into())).await;
        assert!(rig.manifests().is_empty() && rig.events().is_empty());
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert!(rig.events().is_empty());
    });
}

#[test]
fn changes_that_nobody_told_of_are_found_by_the_periodic_look() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.begin("").await;
        rig.write("a.yaml", manifest("a", "x:2"));
        rig.write("b.yaml", manifest("b", "x:1"));
        rig.next_look().await;
        assert_eq!(rig.set(), ["default/a-node-a x:2", "default/b-node-a x:1"]);
        rig.dir.remove("a.yaml");
        rig.next_look().await;
        assert_eq!(rig.set(), ["default/b-node-a x:1"]);
    });
}

#[test]
fn a_bad_file_is_told_once_with_path_key_and_reason_and_disturbs_nobody() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.write("bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  restartPolicy: Sometimes\n  containers:\n  - {name: C, image: x}\n");
        rig.write("c.yaml", manifest("c", "x:1"));
        rig.begin("").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1", "default/c-node-a x:1"]);
        let (errors, keeps_old) = refused(rig.state("bad.yaml"));
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with("spec.containers[0].name: invalid value \"C\""), "{errors:?}");
        assert!(errors[1].starts_with("spec.restartPolicy: unsupported value \"Sometimes\""), "{errors:?}");
        assert!(!keeps_old);
        assert_eq!(rig.events().len(), 1);
        assert!(rig.events()[0].contains("/bad.yaml refused: spec.containers[0].name"), "{:?}", rig.events());
        rig.next_look().await;
        rig.written("bad.yaml").await;
        assert_eq!(rig.events().len(), 1, "told once per change");
        rig.write("bad.yaml", "nonsense");
        rig.written("bad.yaml").await;
        assert_eq!(rig.events().len(), 2);
    });
}

#[test]
fn a_file_that_goes_bad_keeps_its_pod_until_the_next_look() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.begin("").await;
        rig.write("a.yaml", "kind: [");
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert!(refused(rig.state("a.yaml")).1, "the former version runs");
        rig.next_look().await;
        assert_eq!(rig.set(), Vec::<String>::new());
        assert!(!refused(rig.state("a.yaml")).1);
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
    });
}

#[test]
fn of_two_files_with_one_pod_the_later_name_counts_in_a_look_and_the_later_event_between_looks() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("web", "x:1"));
        rig.write("b.yaml", manifest("web", "x:2"));
        rig.begin("").await;
        assert_eq!(rig.set(), ["default/web-node-a x:2"]);
        assert!(refused(rig.state("a.yaml")).0[0].starts_with("default/web-node-a is defined by "));
        assert_eq!(rig.events().len(), 1);
        rig.write("a.yaml", manifest("web", "x:3"));
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/web-node-a x:3"]);
        rig.next_look().await;
        assert_eq!(rig.set(), ["default/web-node-a x:2"]);
        rig.dir.remove("b.yaml");
        rig.gone("b.yaml").await;
        assert_eq!(rig.set(), ["default/web-node-a x:3"]);
        assert_eq!(rig.state("a.yaml"), accepted("default/web-node-a"));
    });
}

#[test]
fn writing_the_same_in_other_words_changes_nothing_and_an_edit_makes_another_uid() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.begin("").await;
        let uid = rig.sets.uid();
        rig.write("a.yaml", format!("# a comment\n{}\n\n", manifest("a", "x:1")));
        rig.written("a.yaml").await;
        assert_eq!(rig.sets.uid(), uid);
        let sets = rig.sets.all();
        assert!(Arc::ptr_eq(&sets[0][0], &sets.last().unwrap()[0]), "the same object is handed over");
        rig.write("a.yaml", manifest("a", "x:2"));
        rig.written("a.yaml").await;
        assert_ne!(rig.sets.uid(), uid);
    });
}

#[test]
fn a_touched_file_is_not_decoded_again_and_moves_nothing() {
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("web", "x:1"));
        rig.write("b.yaml", manifest("web", "x:2"));
        rig.begin("").await;
        rig.written("a.yaml").await;
        assert_eq!(rig.set(), ["default/web-node-a x:2"]);
    });
}

#[test]
fn a_broken_watch_is_set_up_again_and_nothing_is_missed() {
    with_rig(|rig| async move {
        rig.begin("").await;
        rig.watch.refuse(&[std::io::ErrorKind::Other; 2]);
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.event(Change::PathGone).await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"], "a lost watch is a reason to look");
        rig.write("b.yaml", manifest("b", "x:1"));
        tokio::time::sleep(std::time::Duration::from_secs(1 + 2)).await;
        rig.work().await;
        assert_eq!(rig.watch.starts(), 4);
        assert_eq!(rig.set().len(), 2, "the first success is a reason to look");
    });
}

#[test]
fn an_overflow_of_the_queue_is_a_reason_to_look() {
    with_rig(|rig| async move {
        rig.begin("").await;
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.event(Change::Everything).await;
        assert_eq!(rig.set().len(), 1);
    });
}

#[test]
fn a_hundred_broken_manifests_are_each_told_and_the_good_ones_run() {
    with_rig(|rig| async move {
        let damage: [(&str, &str); 10] = [
            ("apiVersion: v1", "apiVersion: v2"),
            ("kind: Pod", "kind: Deployment"),
            ("kind: Pod", "kind: List"),
            ("name: p", "name: P_"),
            ("metadata:", "metadata: 5 #"),
            ("containers:", "container:"),
            ("name: c", "name: c/d"),
            ("image: ", "image: 7, x: "),
            ("image: ", "image: ' ', x: "),
            ("spec:", "spec: ["),
        ];
        for n in 0..100 {
            let (good, bad) = damage[n % damage.len()];
            let name = format!("p{n}");
            let text = manifest(&name, "x:1").replace(good, bad);
            assert_ne!(text, manifest(&name, "x:1"));
            rig.write(&format!("{n:03}.yaml"), text);
        }
        for good in ["000-good.yaml", "050-good.yaml", "zzz"] {
            rig.write(good, manifest(&good.replace('.', "-"), "x:1"));
        }
        rig.begin("").await;
        assert_eq!(rig.set().len(), 3);
        assert_eq!(rig.events().len(), 100);
        for n in 0..100 {
            let (errors, _) = refused(rig.state(&format!("{n:03}.yaml")));
            assert!(!errors.is_empty() && errors.iter().all(|e| e.contains(": ")), "{n}: {errors:?}");
        }
    });
}
