use super::*;
use crate::top::sample::{ActorLine, Cpu, Memory, PodRef, PodStats, Sample, Summary};
use crate::top::view::Sort;
use model::Timestamp;
use model::core::Pod;
use server::local::PodItems;
use std::time::{Duration, Instant};

fn pod(namespace: &str, name: &str, restarts: i32) -> Pod {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"uid-{name}"}},"spec":{{"containers":[{{"name":"c"}}]}},
        "status":{{"phase":"Running","containerStatuses":[{{"name":"c","ready":true,"restartCount":{restarts},"image":"",
        "imageID":"","state":{{"running":{{}}}}}}]}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn stats(name: &str, rate: Option<u64>, counter: u64, memory: u64) -> PodStats {
    PodStats {
        pod_ref: PodRef { uid: format!("uid-{name}") },
        cpu: Some(Cpu { usage_nano_cores: rate, usage_core_nano_seconds: Some(counter) }),
        memory: Some(Memory { working_set_bytes: Some(memory << 20), available_bytes: None }),
    }
}

fn actor(name: &str, turns: u64, busy_ms: u64, depth: u64) -> ActorLine {
    ActorLine {
        name: name.into(),
        state: "running".into(),
        turns,
        turn_sum_ns: busy_ms * 1_000_000,
        mailbox_depth: depth,
        mailbox_capacity: 256,
        ..ActorLine::default()
    }
}

fn sample(taken: Instant, pods: Vec<PodStats>, actors: Vec<ActorLine>) -> Sample {
    let mut summary = Summary { pods, ..Summary::default() };
    summary.node.node_name = "n1".into();
    summary.node.cpu = Some(Cpu { usage_nano_cores: Some(1_500_000_001), usage_core_nano_seconds: None });
    summary.node.memory = Some(Memory { working_set_bytes: Some(2 << 30), available_bytes: Some(6 << 30) });
    let items = vec![pod("shop", "web", 0), pod("shop", "db", 3), pod("kube-system", "dns", 1)];
    Sample {
        taken,
        at: Timestamp::from_secs(1_800_000_000),
        pods: PodItems { items, ..PodItems::default() },
        summary: Ok(summary),
        actors,
    }
}

fn view() -> View {
    let start = Instant::now();
    let before = sample(
        start,
        vec![stats("web", None, 1_000_000_000, 10), stats("dns", None, 9_000_000_000, 5)],
        vec![actor("pod-worker/uid-web", 100, 0, 0), actor("status-manager", 50, 100, 0)],
    );
    let after = sample(
        start + Duration::from_secs(2),
        vec![
            stats("web", None, 1_500_000_000, 30),
            stats("db", Some(7_000_000), 0, 200),
            stats("dns", None, 1_000_000_000, 5),
        ],
        vec![actor("pod-worker/uid-web", 300, 100, 7), actor("status-manager", 52, 120, 1), actor("new", 5, 5, 0)],
    );
    let mut view = View::of(Some(&before), &after, None);
    view.sort(Sort::Cpu);
    view
}

#[test]
fn a_page_shows_rates_of_two_samples_and_the_daemons_own_where_it_has_them() {
    let expected = "\
n1  2027-01-15T08:00:00Z  3 pods, 3 running  cpu 1501m  memory 2048Mi used, 6144Mi free

NAMESPACE    NAME  READY  STATUS   RESTARTS  CPU   MEMORY
shop         web   1/1    Running  0         250m  30Mi
shop         db    1/1    Running  3         7m    200Mi
kube-system  dns   1/1    Running  1         -     5Mi

ACTOR                STATE    RESTARTS  MAILBOX  TURNS/S  BUSY  LAST CAUSE
pod-worker shop/web  running  0         7/256    100.0    5.0%  -
status-manager       running  0         1/256    1.0      1.0%  -
new                  running  0         0/256    -        -     -";
    assert_eq!(lines_of(&view(), Section::All, usize::MAX).join("\n"), expected);
}

#[test]
fn what_comes_first_is_chosen() {
    let table = [
        (Sort::Cpu, ["web", "db", "dns"], "pod-worker/uid-web"),
        (Sort::Memory, ["db", "web", "dns"], "pod-worker/uid-web"),
        (Sort::Restarts, ["db", "dns", "web"], "new"),
        (Sort::Name, ["dns", "db", "web"], "new"),
    ];
    for (sort, pods, actor) in table {
        let mut view = view();
        view.sort(sort);
        let names: Vec<&str> = view.pods.iter().map(|p| p.name.as_str()).collect();
        assert_eq!((names.as_slice(), view.actors[0].name.as_str()), (pods.as_slice(), actor), "{sort:?}");
    }
}

#[test]
fn a_screen_is_never_overfull_whatever_its_size() {
    let mut view = view();
    view.notes.push("a\x1b[2Jbad\nnote".into());
    for rows in 1..20 {
        for columns in [1, 10, 200] {
            for what in [Section::All, Section::Pods, Section::Actors] {
                let screen = screen(&view, what, Size { columns, rows });
                let screen = screen.strip_prefix("\x1b[H").and_then(|s| s.strip_suffix("\x1b[J")).unwrap();
                let lines: Vec<&str> = screen.lines().map(|line| line.strip_suffix("\x1b[K").unwrap()).collect();
                assert!(lines.len() < usize::from(rows), "{what:?} {rows}x{columns}: {lines:?}");
                assert!(lines.iter().all(|l| l.chars().count() <= usize::from(columns)), "{lines:?}");
                assert!(!lines.iter().any(|l| l.contains(char::is_control)), "{lines:?}");
            }
        }
    }
}

#[test]
fn pods_and_actors_share_the_room_and_what_is_missing_is_counted() {
    let shown = |rows| lines_of(&view(), Section::All, rows).join("\n");
    assert_eq!(shown(11), shown(usize::MAX));
    let some = shown(9);
    assert!(some.contains(" web ") && some.contains("status-manager") == some.contains("... 1 more"), "{some}");
    let few = shown(7);
    assert!(
        few.ends_with("ACTOR                STATE    RESTARTS  MAILBOX  TURNS/S  BUSY  LAST CAUSE\n... 3 more"),
        "{few}"
    );
}

#[test]
fn a_namespace_leaves_out_the_others_and_a_refusal_of_figures_is_said() {
    let mut sample = sample(Instant::now(), Vec::new(), Vec::new());
    sample.summary = Err("no figures: the daemon does not serve /stats/summary".into());
    let view = View::of(None, &sample, Some("shop"));
    let page = lines_of(&view, Section::Pods, usize::MAX);
    assert_eq!(view.pods.len(), 2);
    assert!(page[1].starts_with("no figures") && page.last().unwrap().ends_with("3         -    -"), "{page:#?}");
}
