//! Logs that are written while they are read.

use std::time::{Duration, Instant};

use actor::testing::{self, spin_until};
use cri_api::v1;
use fakes::runtime::{Fault, samples};
use log_files::FolderWatch;
use model::runtime::ContainerState;
use tonic::Code;

use super::rig::{Follower, Rig, append, container, line, soon};

/// Waits until somebody waits for the folder, so that what comes next comes as an event.
async fn armed(rig: &Rig) {
    spin_until("somebody waits", || rig.deps.watch.load().1 > 0).await;
}

#[tokio::test]
async fn what_is_written_is_sent_until_the_container_ends() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    armed(&rig).await;
    let started = Instant::now();
    rig.write(&line("two"));
    follower.until("two\n").await;
    assert!(started.elapsed() < Duration::from_millis(700), "an event tells of it, not the look once a second");
    // A line is sent when it has its end.
    rig.write("2026-01-01T00:00:00.5Z stdout F th");
    rig.write("ree\n2026-01-01T00:00:00.5Z stdout P fo");
    follower.until("three\n").await;
    rig.write(&format!("\n{}", line("ur")));
    follower.until("four\n").await;
    rig.write(&line("last"));
    rig.write("2026-01-01T00:00:00.5Z stdout F never ended");
    rig.observe(ContainerState::Exited);
    assert_eq!(follower.into_whole().await, "one\ntwo\nthree\nfour\nlast\n");
    assert_eq!(rig.fake.count("ContainerStatus"), 0, "the board told it all");
}

#[tokio::test]
async fn the_head_comes_before_the_first_line() {
    let rig = Rig::new().await;
    rig.write("");
    let mut follower = Follower::new(soon(rig.ask("?follow=true")).await);
    armed(&rig).await;
    rig.write(&line("one"));
    follower.until("one\n").await;
}

#[tokio::test]
async fn a_tail_is_followed_from_there() {
    let rig = Rig::new().await;
    rig.write(&[line("one"), line("two"), line("three")].concat());
    let mut follower = Follower::new(rig.ask("?follow=true&tailLines=1&timestamps=true").await);
    follower.until("three\n").await;
    rig.write(&line("four"));
    rig.observe(ContainerState::Exited);
    let time = "2026-01-01T00:00:00.500000000Z";
    assert_eq!(follower.into_whole().await, format!("{time} three\n{time} four\n"));
}

#[tokio::test]
async fn a_container_that_ended_before_is_read_to_its_end() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    rig.observe(ContainerState::Exited);
    let answer = rig.ask("?follow=true").await;
    assert_eq!(Follower::new(answer).into_whole().await, "one\n");
}

#[test]
fn without_events_the_file_is_looked_at_all_the_same() {
    testing::run(1, async |kernel| {
        let rig = Rig::on(&kernel, FolderWatch::blind());
        rig.write(&line("one"));
        let mut follower = Follower::new(rig.ask_here("?follow=true", 1 << 16).await);
        follower.until("one\n").await;
        // The reader has nothing left but to wait.
        tokio::time::sleep(Duration::from_millis(100)).await;
        rig.write(&line("two"));
        let written = tokio::time::Instant::now();
        follower.until("two\n").await;
        assert!(written.elapsed() <= Duration::from_secs(1), "{:?}", written.elapsed());
    });
}

/// Rotation as runtime and LogManager do it: rename, new file, last lines to the old one, then to the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_is_lost_or_doubled_by_rotations() {
    let rig = Rig::new().await;
    rig.write(&line("round -"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    // The head says nothing about the file; its first line does.
    follower.until("round -\n").await;
    let path = rig.log();
    let open = || std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let mut file = open();
    let mut n = 0;
    let mut write = |file: &mut std::fs::File| {
        append(file, &line(&n.to_string()));
        n += 1;
    };
    for round in 0..20 {
        (0..300).for_each(|_| write(&mut file));
        let old = path.with_extension(format!("log.{round}"));
        std::fs::rename(&path, &old).unwrap();
        write(&mut file);
        let new = open();
        write(&mut file);
        file = new;
        append(&mut file, &line(&format!("round {round}")));
        // A follower that is more than one rotation behind would miss a file, as a kubelet's does.
        follower.until(&format!("round {round}\n")).await;
        std::fs::remove_file(old).unwrap();
    }
    rig.observe(ContainerState::Exited);
    let text = follower.into_whole().await;
    let numbers: Vec<&str> = text.lines().filter(|l| !l.starts_with("round")).collect();
    let expected: Vec<String> = (0..n).map(|n: i32| n.to_string()).collect();
    assert_eq!(numbers, expected);
    assert_eq!(text.matches("round").count(), 21);
}

#[tokio::test]
async fn a_log_in_the_middle_of_its_rotation_is_found() {
    let rig = Rig::new().await;
    let answer = soon(rig.ask("?follow=true")).await;
    rig.write(&line("one"));
    rig.observe(ContainerState::Exited);
    assert_eq!(Follower::new(answer).into_whole().await, "one\n");
}

#[tokio::test]
async fn what_is_in_the_new_file_is_sent_even_when_the_container_has_ended() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    std::fs::rename(rig.log(), rig.dir.path().join("1.log.1")).unwrap();
    rig.write(&line("two"));
    rig.observe(ContainerState::Exited);
    assert_eq!(follower.into_whole().await, "one\ntwo\n");
}

#[tokio::test]
async fn a_file_that_is_cut_is_read_from_its_start() {
    let rig = Rig::new().await;
    rig.write(&line("a long line at first"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("first\n").await;
    armed(&rig).await;
    std::fs::write(rig.log(), line("two")).unwrap();
    follower.until("two\n").await;
    rig.observe(ContainerState::Exited);
    assert_eq!(follower.into_whole().await, "a long line at first\ntwo\n");
}

#[tokio::test]
async fn a_link_that_takes_the_place_of_the_log_is_not_followed() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    let secret = rig.dir.path().join("secret");
    std::fs::write(&secret, line("secret")).unwrap();
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    armed(&rig).await;
    std::fs::remove_file(rig.log()).unwrap();
    std::os::unix::fs::symlink(&secret, rig.log()).unwrap();
    rig.observe(ContainerState::Exited);
    assert_eq!(follower.into_whole().await, "one\n");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_reader() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    armed(&rig).await;
    drop(follower);
    spin_until("nobody waits", || rig.deps.watch.load() == (0, 0)).await;
}

/// A running container of the fake runtime that the board does not show.
async fn unseen(rig: &Rig) -> String {
    rig.fake.add_images(&["app:1"]);
    let sandbox = v1::PodSandboxConfig {
        log_directory: rig.dir.path().to_str().unwrap().to_owned(),
        ..samples::sandbox("web", 0)
    };
    let request = v1::RunPodSandboxRequest { config: Some(sandbox.clone()), runtime_handler: String::new() };
    let pod_sandbox_id = rig.deps.runtime.run_pod_sandbox(request).await.unwrap().pod_sandbox_id;
    let config = v1::ContainerConfig { log_path: "1.log".to_owned(), ..samples::container("web", "app", "app:1", 1) };
    let request = v1::CreateContainerRequest { pod_sandbox_id, config: Some(config), sandbox_config: Some(sandbox) };
    let id = rig.deps.runtime.create_container(request).await.unwrap().container_id;
    rig.deps.runtime.start_container(v1::StartContainerRequest { container_id: id.clone() }).await.unwrap();
    rig.status(&format!(r#""containerID":"fake://{id}","state":{{"running":{{}}}}"#));
    rig.observe_containers(Vec::new());
    id
}

#[tokio::test]
async fn the_runtime_is_asked_about_a_container_that_the_board_does_not_show() {
    let rig = Rig::new().await;
    let id = unseen(&rig).await;
    rig.write(&line("one"));
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    rig.write(&line("two"));
    follower.until("two\n").await;
    rig.fake.exit(&id, 0);
    assert_eq!(follower.into_whole().await, "one\ntwo\n");
    assert!(rig.fake.count("ContainerStatus") <= 6, "not asked for each line");
}

#[tokio::test]
async fn a_runtime_that_is_away_ends_nothing_and_one_that_forgot_the_container_does() {
    let rig = Rig::new().await;
    let id = unseen(&rig).await;
    rig.write(&line("one"));
    rig.observe_containers(vec![container("now", ContainerState::Running, rig.log().to_str().unwrap().to_owned())]);
    rig.status(r#""containerID":"fake://now","state":{"running":{}}"#);
    let mut follower = Follower::new(rig.ask("?follow=true").await);
    follower.until("one\n").await;
    rig.fake.inject(Fault::error("ContainerStatus", Code::Unavailable, "away").times(1));
    rig.observe_containers(vec![container(&id, ContainerState::Running, String::new())]);
    rig.write(&line("two"));
    follower.until("two\n").await;
    let text = follower.into_whole().await;
    let end = "rpc error: code = NotFound desc = an error occurred when try to find container \"now\": not found";
    assert_eq!(text, format!("one\ntwo\n{end}"));
}
