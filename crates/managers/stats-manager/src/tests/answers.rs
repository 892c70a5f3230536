use contract::runtime::Observed;

use actor::testing::run;
use contract::stats::{Cadvisor, Resource, Summarise};
use fakes::stats::Cgroups;
use model::PodUid;
use model::runtime::ContainerState;

use super::{Bed, observed};

const MIB: u64 = 1 << 20;

#[test]
fn a_summary_tells_of_node_systems_and_pods() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        run(1, |kernel| async move {
            let bed = Bed::new(cgroups);
            bed.pod("web", &["app", "two"]);
            bed.start(&kernel);
            let s = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
            assert_eq!(s.node.node_name, "n1");
            let cpu = s.node.cpu.unwrap();
            assert_eq!(cpu.usage_core_nano_seconds, Some(100_000_000));
            assert_eq!(s.node.memory.unwrap().available_bytes, Some((4 << 30) - usage(cgroups) + 4096));
            assert!(cpu.psi.is_some(), "of the machine, whatever its cgroups can do");
            let systems: Vec<_> = s.node.system_containers.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(systems, ["pods"]);
            assert_eq!(s.node.network.as_ref().unwrap().default_interface.rx_bytes, Some(1000));
            assert_eq!(s.node.rlimit.unwrap().curproc, Some(359));
            assert_eq!(s.node.runtime.as_ref().unwrap().image_fs.unwrap().used_bytes, Some(60_000));
            assert!(s.node.fs.unwrap().capacity_bytes.unwrap() > 0);

            let [pod] = &s.pods[..] else { panic!("{:?}", s.pods) };
            assert_eq!((pod.pod_ref.name.as_str(), pod.pod_ref.uid.as_str()), ("web", "uid-web"));
            assert_eq!(pod.memory.unwrap().usage_bytes, Some(9 * MIB), "of the pod's cgroup, no sum");
            assert_eq!(pod.network.as_ref().unwrap().default_interface.tx_bytes, Some(22));
            assert_eq!(pod.process_stats.unwrap().process_count, 2);
            assert_eq!(pod.io.is_some(), cgroups == Cgroups::V2);
            let app = &pod.containers[0];
            assert_eq!((app.name.as_str(), app.memory.unwrap().usage_bytes), ("app", Some(MIB)));
            assert_eq!(app.rootfs.unwrap().used_bytes, Some(32_768));
            let logs = app.logs.unwrap();
            assert_eq!(logs.inodes_used, Some(1));
            assert!(logs.used_bytes.unwrap() >= 10_000);
            let ephemeral = pod.ephemeral_storage.unwrap();
            assert_eq!(ephemeral.inodes_used, Some(2 * 10 + 2 + 1), "layers, log files, etc-hosts");
        });
    }
}

/// v2 has no file for it: anonymous memory and files together.
fn usage(cgroups: Cgroups) -> u64 {
    if cgroups == Cgroups::V1 { 100 * MIB } else { 200 * MIB }
}

#[test]
fn only_processor_and_memory_asks_no_runtime_while_the_kernel_knows_all() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.start(&kernel);
        let s = bed.wiring.call(Summarise { only_cpu_and_memory: true }).await.unwrap();
        assert_eq!(bed.asked(), 0);
        assert_eq!(s.pods[0].containers[0].memory.unwrap().usage_bytes, Some(MIB));
        assert!(s.node.fs.is_none() && s.node.network.is_none() && s.node.rlimit.is_none() && s.node.runtime.is_none());
        let pod = &s.pods[0];
        assert!(pod.network.is_none() && pod.ephemeral_storage.is_none() && pod.containers[0].logs.is_none());
        assert_eq!(s.node.system_containers.len(), 1);
    });
}

#[test]
fn a_container_without_a_cgroup_has_the_runtimes_numbers() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V1);
        bed.pod("web", &["app"]);
        bed.tree.remove_cgroup("/kubepods/burstable/poduid-web/web-app");
        bed.start(&kernel);
        for only in [true, false] {
            let s = bed.wiring.call(Summarise { only_cpu_and_memory: only }).await.unwrap();
            assert_eq!(s.pods[0].containers[0].memory.unwrap().usage_bytes, Some(400_000), "{only}");
        }
        assert_eq!(bed.asked(), 2);
    });
}

#[test]
fn pods_without_containers_that_run_are_not_there() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.observe("ended", vec![observed("x", "app", ContainerState::Exited)]);
        bed.observe("sandbox-only", vec![]);
        bed.start(&kernel);
        let s = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        assert_eq!(s.pods.iter().map(|p| p.pod_ref.name.as_str()).collect::<Vec<_>>(), ["web"]);
    });
}

#[test]
fn a_pod_in_the_hosts_network_has_none_of_its_own() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        let uid = PodUid::from("uid-web");
        let mut pod = model::runtime::PodObservation::clone(&bed.wiring.board::<Observed>().get(&uid).unwrap().pod);
        pod.sandboxes[0].host_network = None;
        fakes::observe(&bed.wiring, pod);
        bed.desire("web", &serde_json::json!({"hostNetwork": true}));
        bed.start(&kernel);
        assert!(bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap().pods[0].network.is_none());
        let text = bed.wiring.call(Cadvisor).await.unwrap();
        assert!(!text.contains("interface=\"eth0\",id=\"/kubepods"), "{text}");
    });
}

#[test]
fn names_that_lead_elsewhere_are_nobodys_files() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.tree.write("logs/secret.log", "x");
        bed.observe("web", vec![observed("web-app", "..", ContainerState::Running)]);
        bed.start(&kernel);
        let s = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        assert!(s.pods[0].containers[0].logs.is_none());
    });
}

#[test]
fn resource_metrics_carry_every_pod_and_say_when_they_failed() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.start(&kernel);
        let text = bed.wiring.ask(Resource).await.unwrap();
        let line = "container_memory_working_set_bytes{container=\"app\",namespace=\"shop\",pod=\"web\"} 1.04448e+06 1800000000000\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("resource_scrape_error 0\n"));
    });
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.tree.remove_cgroup("/");
        bed.start(&kernel);
        let text = bed.wiring.ask(Resource).await.unwrap();
        assert!(text.ends_with("resource_scrape_error 1\n"), "{text}");
    });
}

#[test]
fn cadvisor_rows_are_the_cgroups_that_there_are() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        run(1, |kernel| async move {
            let mut bed = Bed::new(cgroups);
            bed.config.system_cgroup = "/system.slice".into();
            bed.config.runtime_cgroup = "/gone".into();
            bed.tree.cgroup("/system.slice", 5, &[]);
            bed.pod("web", &["app"]);
            bed.start(&kernel);
            let text = bed.wiring.call(Cadvisor).await.unwrap();
            let ids: Vec<&str> = text
                .lines()
                .filter_map(|l| l.strip_prefix("container_memory_rss{")?.split("id=\"").nth(1)?.split('"').next())
                .collect();
            let pod = "/kubepods/burstable/poduid-web";
            let (sandbox, app) = (format!("{pod}/sandbox-web"), format!("{pod}/web-app"));
            assert_eq!(
                ids,
                [
                    "/",
                    "/kubepods",
                    "/kubepods/besteffort",
                    "/kubepods/burstable",
                    "/system.slice",
                    pod,
                    sandbox.as_str(),
                    app.as_str()
                ]
            );
            assert!(text.contains("container_scrape_error 0\n"));
            let network: Vec<&str> =
                text.lines().filter(|l| l.starts_with("container_network_receive_bytes_total{")).collect();
            assert_eq!(network.len(), 3, "two interfaces of the machine, one of the sandbox: {network:?}");
            assert!(text.contains("image=\"docker.io/library/web:1\""));
            assert!(text.contains("machine_memory_bytes{boot_id=\"boot-1\",machine_id=\"machine-1\",system_uuid=\"machine-1\"} 4.294967296e+09"));
        });
    }
}
