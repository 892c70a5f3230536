//! Rows and families of `/metrics/cadvisor`.

use std::collections::BTreeSet;

use model::Timestamp;
use model::reading::{CgroupReading, DiskReading, DiskTraffic, MountedDisk};
use model::stats::{PsiData, PsiStats};

use super::{NOW, disk, interface, machine, used};
use crate::cadvisor::{Input, Row, render};

fn full() -> CgroupReading {
    let mut r = used(1_500_000_000, 400);
    r.cpu.user_ns = Some(1_000_000_000);
    r.cpu.system_ns = Some(500_000_000);
    (r.cpu.shares, r.cpu.quota_us, r.cpu.period_us) = (Some(1024), Some(50_000), Some(100_000));
    (r.cpu.periods, r.cpu.throttled_periods, r.cpu.throttled_ns) = (Some(9), Some(3), Some(2_000_000_000));
    r.memory.limit = Some(1000);
    r.memory.tree_page_faults = Some(99);
    r.memory.oom_kills = Some(1);
    let line = |total| PsiData { total, ..PsiData::default() };
    r.cpu.psi = Some(PsiStats { some: line(2_000_000), full: line(1_000_000) });
    r.tasks.threads = Some(12);
    r.disks = vec![DiskReading {
        device: "/dev/vda".into(),
        major: 254,
        minor: 0,
        read_bytes: Some(4096),
        write_bytes: Some(0),
        reads: Some(2),
        writes: None,
    }];
    r
}

fn input() -> Input {
    let row = |id: &str| Row { id: id.into(), reading: full(), ..Row::default() };
    let of_pod =
        |id: &str, name: &str| Row { namespace: "shop".into(), pod: "web".into(), name: name.into(), ..row(id) };
    let traffic = DiskTraffic { reads: 77, read_ms: 1500, ..DiskTraffic::default() };
    Input {
        machine: machine(),
        at: NOW,
        disks: vec![MountedDisk { device: "/dev/vda".into(), fs: disk(), traffic: Some(traffic) }],
        rows: vec![
            Row { network: vec![interface("eth0", 1000)], ..row("/") },
            row("/kubepods"),
            of_pod("/kubepods/podu", ""),
            Row { network: vec![interface("eth0", 10)], ..of_pod("/kubepods/podu/s1", "s1") },
            Row {
                container: "app".into(),
                image: "docker.io/library/web:1".into(),
                started: Timestamp::from_secs(1_795_000_000),
                ..of_pod("/kubepods/podu/c1", "c1")
            },
        ],
        failed: false,
    }
}

/// The lines of one family without its head.
fn lines<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let mine = |l: &&str| l.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    text.lines().filter(mine).collect()
}

#[test]
fn a_container_row_carries_every_name_and_the_time_of_its_reading() {
    let text = render(&input());
    let all = lines(&text, "container_cpu_usage_seconds_total");
    assert_eq!(all.len(), 5);
    assert_eq!(
        all[4],
        "container_cpu_usage_seconds_total{container=\"app\",cpu=\"total\",id=\"/kubepods/podu/c1\",\
         image=\"docker.io/library/web:1\",name=\"c1\",namespace=\"shop\",pod=\"web\"} 1.5 1795165689310"
    );
    assert_eq!(
        all[0],
        "container_cpu_usage_seconds_total{container=\"\",cpu=\"total\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"} \
         1.5 1795165689310"
    );
    let ours: Vec<&str> =
        text.lines().filter(|l| l.starts_with("container_") && !l.starts_with("container_scrape_error")).collect();
    assert!(ours.iter().all(|l| l.ends_with(" 1795165689310")), "every sample has its time");
}

#[test]
fn only_one_row_of_a_pod_carries_its_network() {
    let text = render(&input());
    let all = lines(&text, "container_network_receive_bytes_total");
    let ids: Vec<_> = all.iter().map(|l| l.split("id=\"").nth(1).unwrap().split('"').next().unwrap()).collect();
    assert_eq!(ids, ["/", "/kubepods/podu/s1"]);
    assert!(all[1].contains("interface=\"eth0\"") && all[1].contains("pod=\"web\""));
    assert_eq!(lines(&text, "container_network_transmit_packets_dropped_total").len(), 2);
}

#[test]
fn samples_are_unique_and_families_come_once() {
    let text = render(&input());
    let samples: Vec<_> =
        text.lines().filter(|l| !l.starts_with('#')).map(|l| l.rsplit_once("} ").map_or(l, |p| p.0)).collect();
    let unique: BTreeSet<_> = samples.iter().collect();
    assert_eq!(unique.len(), samples.len());
    let heads: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")).collect();
    assert_eq!(heads.iter().collect::<BTreeSet<_>>().len(), heads.len());
}

#[test]
fn values_follow_the_book() {
    let text = render(&input());
    let value = |name: &str, part: &str| {
        let all = lines(&text, name);
        let line = all.iter().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no {name} with {part}"));
        line.rsplit(' ').nth(1).unwrap().to_owned()
    };
    let app = "container=\"app\"";
    for (name, part, expected) in [
        ("container_memory_working_set_bytes", app, "300"),
        ("container_memory_failures_total", "container=\"app\",failure_type=\"pgfault\",scope=\"hierarchy\"", "99"),
        ("container_memory_failures_total", "container=\"app\",failure_type=\"pgmajfault\",scope=\"container\"", "1"),
        ("container_cpu_cfs_throttled_seconds_total", app, "2"),
        ("container_pressure_cpu_waiting_seconds_total", app, "2"),
        ("container_pressure_cpu_stalled_seconds_total", app, "1"),
        ("container_spec_memory_limit_bytes", app, "1000"),
        ("container_spec_memory_reservation_limit_bytes", app, "0"),
        ("container_threads_max", app, "0"),
        ("container_oom_events_total", app, "1"),
        ("container_start_time_seconds", app, "1.795e+09"),
        ("container_start_time_seconds", "id=\"/kubepods\"", "1.79516e+09"),
        ("container_fs_reads_total", app, "2"),
        ("container_fs_reads_total", "id=\"/\"", "77"),
        ("container_fs_read_seconds_total", "id=\"/\"", "1.5"),
        ("container_fs_usage_bytes", "id=\"/\"", "400"),
        ("container_fs_reads_bytes_total", app, "4096"),
        (
            "container_blkio_device_usage_total",
            "container=\"app\",device=\"/dev/vda\",major=\"254\",minor=\"0\",operation=\"Write\"",
            "0",
        ),
        ("machine_memory_bytes", "machine_id=\"m\"", "10000"),
        ("machine_cpu_physical_cores", "boot_id=\"b\"", "2"),
    ] {
        assert_eq!(value(name, part), expected, "{name}");
    }
    assert_eq!(lines(&text, "container_fs_usage_bytes").len(), 1, "room is told of the machine only");
    assert!(text.contains("osVersion=\"Some \\\"Linux\\\"\"} 1\n"));
}

#[test]
fn a_quota_gives_throttling_its_sense_and_what_is_not_known_is_left_out() {
    let mut bare =
        Row { id: "/x".into(), reading: CgroupReading { at: NOW, ..CgroupReading::default() }, ..Row::default() };
    bare.reading.cpu.throttled_periods = Some(3);
    let text = render(&Input { rows: vec![bare], failed: true, ..Input::default() });
    assert!(lines(&text, "container_cpu_cfs_throttled_periods_total").is_empty());
    assert!(lines(&text, "container_spec_memory_limit_bytes").is_empty());
    assert!(lines(&text, "container_threads_max").is_empty());
    assert_eq!(lines(&text, "container_last_seen").len(), 1);
    assert_eq!(lines(&text, "container_scrape_error"), ["container_scrape_error 1"]);
    assert_eq!(lines(&text, "machine_scrape_error"), ["machine_scrape_error 1"]);
    assert!(lines(&text, "machine_memory_bytes").is_empty());
}
