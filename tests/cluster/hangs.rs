//! A driver that does not answer.

use std::time::{Duration, Instant};

use csi_driver::{Config, Effect, Rule};
use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{PODS, SOON, create, delete, lasting, start, state, wait_gone, wait_running};
use crate::site::{Claim, DRIVER, PLAIN, Site, claimed, user};

const SHOWN: &str = include_str!("hangs/volumes.txt");

fn hang(call: &str) -> Rule {
    Rule { call: call.to_owned(), times: None, effect: Effect::Hang }
}

/// How long these take to come and to go, one after the other: a pod without a claim, and one with a claim of the other driver.
fn others(site: &Site, round: &str) -> Duration {
    let begun = Instant::now();
    let (plain, fine) = (format!("plain-{round}"), format!("fine-{round}"));
    create(&site.node, &lasting(&plain));
    wait_running(&site.node, &plain);
    create(&site.node, &user(&fine, &claimed("fine"), &json!({})));
    site.ready(&fine);
    for name in [&plain, &fine] {
        delete(&site.node, name);
        wait_gone(&site.node, name);
    }
    begun.elapsed()
}

/// `bosun get volumes` without what differs from run to run: rows in order, words for times, UIDs and folders.
fn shown(site: &Site) -> String {
    let words = crate::beside::normal::Words::of(&site.root());
    let cli = |output: &str| site.node.bosun.cli(&["get", "volumes", "-o", output]).expect("it answers");
    let table = cli("wide");
    let age = |word: &str| word.strip_suffix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    let line = |line: &str| {
        let word = |w: &str| {
            if age(w.trim_matches(['(', ')'])) { w.replace(|c: char| c.is_ascii_digit(), "") } else { words.text(w) }
        };
        line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = table.lines().map(line).collect();
    lines[1..].sort();
    let mut rows: Vec<Value> = serde_json::from_str(&cli("json")).expect("JSON");
    for row in &mut rows {
        for (key, value) in row.as_object_mut().into_iter().flatten() {
            match value {
                Value::Number(_) if key.ends_with("Ns") => *value = json!("<time>"),
                Value::String(text) => *text = words.text(text),
                _ => {}
            }
        }
    }
    rows.sort_by_key(|row| row["volume"].to_string() + &row["handle"].to_string());
    let rows = serde_json::to_string_pretty(&rows).expect("JSON");
    format!("$ bosun get volumes -o wide\n{}\n$ bosun get volumes -o json\n{rows}\n", lines.join("\n"))
}

#[test]
fn a_driver_that_hangs_holds_up_its_own_pods_and_nobody_else() {
    let mut site = Site::on(start(), &Config::default());
    for (claim, driver) in [("held", PLAIN), ("stuck", PLAIN), ("fine", DRIVER)] {
        site.claim(&Claim::of(claim, driver));
    }
    create(&site.node, &user("held", &claimed("held"), &json!({})));
    site.ready("held");
    let usual = others(&site, "before");

    site.trouble(PLAIN, &[hang("NodeStageVolume"), hang("NodeUnpublishVolume")]);
    create(&site.node, &user("stuck", &claimed("stuck"), &json!({})));
    delete(&site.node, "held");
    let told = || {
        let shown = shown(&site);
        let both = ["NodeStageVolume (s)", "NodeUnpublishVolume (s)"].iter().all(|call| shown.contains(call));
        if both { Ok(shown) } else { Err(shown) }
    };
    let seen =
        wait_until("the calls to be named", SOON, told).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
    assert_eq!(seen, SHOWN, "hangs/volumes.txt is what it should be");

    let now = others(&site, "beside");
    println!("two pods come and go in {usual:?}, beside a driver that hangs in {now:?}");
    assert!(now < 2 * usual + Duration::from_secs(1), "{usual:?} before, {now:?} beside a driver that hangs");
    let pod = |name: &str| site.node.cluster.admin().get(&format!("{PODS}/{name}")).expect("a pod");
    assert_eq!(state(&pod("stuck"), "waiting")["reason"], "ContainerCreating");
    // Nothing of it is in the pod yet, so it goes; what is in a pod stays with it.
    delete(&site.node, "stuck");
    wait_gone(&site.node, "stuck");
    assert!(pod("held")["metadata"]["deletionTimestamp"].is_string());

    site.trouble(PLAIN, &[]);
    site.restart_drivers(&Config::default());
    wait_gone(&site.node, "held");
    let undone = || {
        let ends = ["held", "stuck"].map(|claim| site.calls_about(claim).last().cloned().unwrap_or_default());
        let good = ends.iter().all(|call| call["call"] == "NodeUnstageVolume" && call["code"] == "Ok");
        if good { Ok(()) } else { Err(format!("{ends:?}")) }
    };
    wait_until("both to be unstaged", 2 * SOON, undone).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
}

/// Calls that a driver gets at a time.
const PLACES: usize = 32;

/// Rows of `bosun get volumes` about claims that begin so, each with the call that is under way.
fn under_way(site: &Site, call: &str) -> usize {
    let text = site.node.bosun.cli(&["get", "volumes", "-o", "json"]).expect("it answers");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    rows.iter().filter(|row| row.to_string().contains(call)).count()
}

#[test]
fn an_unstage_that_hangs_holds_up_its_own_volume_and_nobody_else() {
    let mut site = Site::on(start(), &Config::default());
    for (claim, driver) in [("held", PLAIN), ("next", PLAIN), ("fine", DRIVER)] {
        site.claim(&Claim::of(claim, driver));
    }
    create(&site.node, &user("first", &claimed("held"), &json!({})));
    site.ready("first");
    let usual = others(&site, "before");
    site.trouble(PLAIN, &[hang("NodeUnstageVolume")]);
    delete(&site.node, "first");
    // Nothing of it is in the pod any more.
    wait_gone(&site.node, "first");
    let told = || if under_way(&site, "NodeUnstageVolume") == 1 { Ok(()) } else { Err(shown(&site)) };
    wait_until("the call to be named", SOON, told).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
    // Who wants the same volume waits, who wants another one of the driver does not.
    create(&site.node, &user("second", &claimed("held"), &json!({})));
    create(&site.node, &user("next", &claimed("next"), &json!({})));
    site.ready("next");
    let now = others(&site, "beside");
    println!("two pods come and go in {usual:?}, beside an unstage that hangs in {now:?}");
    assert!(now < 2 * usual + Duration::from_secs(1), "{usual:?} before, {now:?} beside an unstage that hangs");
    let second = site.node.cluster.admin().get(&format!("{PODS}/second")).expect("a pod");
    assert_eq!(state(&second, "waiting")["reason"], "ContainerCreating");

    site.trouble(PLAIN, &[]);
    site.restart_drivers(&Config::default());
    site.ready("second");
    // Nobody knows what became of the call that hung.
    let stages = site.calls_about("held").iter().filter(|c| c["call"] == "NodeStageVolume").count();
    assert_eq!(stages, 2, "it is staged anew");
    for name in ["second", "next"] {
        delete(&site.node, name);
        wait_gone(&site.node, name);
    }
}

#[test]
fn a_driver_whose_places_are_all_taken_holds_up_its_own_pods_and_nobody_else() {
    let mut site = Site::on(start(), &Config::default());
    let names: Vec<String> = (0..PLACES + 2).map(|n| format!("full-{n}")).collect();
    names.iter().for_each(|name| site.claim(&Claim::of(name, PLAIN)));
    for (claim, driver) in [("held", PLAIN), ("fine", DRIVER)] {
        site.claim(&Claim::of(claim, driver));
    }
    create(&site.node, &user("held", &claimed("held"), &json!({})));
    site.ready("held");
    let usual = others(&site, "before");
    site.trouble(PLAIN, &[hang("NodeStageVolume")]);
    for name in &names {
        create(&site.node, &user(name, &claimed(name), &json!({})));
    }
    let all = || match under_way(&site, "NodeStageVolume") {
        all if all == names.len() => Ok(()),
        some => Err(format!("{some} of {}", names.len())),
    };
    wait_until("all to be told", SOON, all).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
    let now = others(&site, "beside");
    println!("two pods come and go in {usual:?}, beside a driver with {} calls in {now:?}", names.len());
    assert!(now < 2 * usual + Duration::from_secs(1), "{usual:?} before, {now:?} beside a driver that is full");
    // What is not in a pod yet holds no pod; what is waits for a place.
    names.iter().for_each(|name| delete(&site.node, name));
    names.iter().for_each(|name| wait_gone(&site.node, name));
    delete(&site.node, "held");

    site.trouble(PLAIN, &[]);
    site.restart_drivers(&Config::default());
    wait_gone(&site.node, "held");
    let undone = || {
        let calls = site.calls();
        let open = |name: &&String| {
            let id = json!(format!("vol-{name}"));
            let last = calls.iter().rfind(|c| c["request"]["volume_id"] == id);
            // One that found no place was never asked for.
            last.is_some_and(|c| c["call"] != "NodeUnstageVolume" || c["code"] != "Ok")
        };
        let open: Vec<_> = names.iter().filter(open).collect();
        let staged = site.root().join("plugins/kubernetes.io/csi").join(PLAIN);
        let left = std::fs::read_dir(staged).map_or(0, Iterator::count);
        if open.is_empty() && left == 0 { Ok(()) } else { Err(format!("{open:?}, {left} directories of a stage")) }
    };
    wait_until("all to be taken back", 3 * SOON, undone).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
}
