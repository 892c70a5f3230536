use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use contract::stats::Summarise;
use fakes::FakeQuotas;
use fakes::stats::Cgroups;
use model::reading::DiskUse;
use model::stats::{PodStats, Summary};
use serde_json::json;

use super::Bed;

fn with_volumes(period: Option<Duration>) -> Bed {
    let mut bed = Bed::new(Cgroups::V2);
    bed.config.volume_period = period;
    bed.pod("web", &["app"]);
    let volumes = json!({"volumes": [
        {"name": "scratch", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "token", "projected": {"sources": []}},
        {"name": "host", "hostPath": {"path": "/"}},
        {"name": "later", "emptyDir": {}},
    ]});
    bed.desire("web", &volumes);
    bed.mounted("web", &["scratch", "memory", "config", "secret", "token", "host"]);
    for path in ["empty-dir/scratch", "empty-dir/memory", "configmap/config", "secret/secret", "projected/token"] {
        bed.tree.write(&format!("root/pods/uid-web/volumes/kubernetes.io~{path}/file"), &"x".repeat(20_000));
    }
    bed.tree.write("root/pods/uid-web/volumes/kubernetes.io~empty-dir/later/file", "not mounted any more");
    bed
}

fn names(summary: &Summary) -> Vec<&str> {
    let pod: &PodStats = &summary.pods[0];
    pod.volumes.iter().map(|v| v.name.as_str()).collect()
}

async fn next(bed: &Bed, pause: u64) -> std::sync::Arc<Summary> {
    tokio::time::sleep(Duration::from_secs(pause)).await;
    for _ in 0..5 {
        settle().await;
    }
    bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap()
}

#[test]
fn volumes_are_measured_after_the_first_answer_and_then_once_per_period() {
    run(1, |kernel| async move {
        let bed = with_volumes(Some(Duration::from_secs(60)));
        bed.start(&kernel);
        let first = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        assert_eq!(names(&first), Vec::<&str>::new(), "the first answer does not wait for them");
        let second = next(&bed, 2).await;
        assert_eq!(names(&second), ["scratch", "memory", "config", "secret", "token"]);
        assert!(metrics::volumes::COLLECTION.with_label_values(&["du"]).get_sample_count() >= 5);
        let scratch = &second.pods[0].volumes[0];
        assert_eq!(scratch.fs.inodes_used, Some(2));
        assert!(scratch.fs.used_bytes.unwrap() >= 20_000 && scratch.fs.capacity_bytes.unwrap() > 0);
        let ephemeral = |s: &Summary| s.pods[0].ephemeral_storage.unwrap().inodes_used.unwrap();
        assert_eq!(ephemeral(&second) - ephemeral(&first), 4, "the emptyDir on disk and the configMap count");

        bed.tree.write("root/pods/uid-web/volumes/kubernetes.io~empty-dir/scratch/more", "x");
        let inodes = |s: &Summary| s.pods[0].volumes[0].fs.inodes_used;
        assert_eq!(inodes(&*next(&bed, 50).await), Some(2), "not before the period has passed");
        next(&bed, 80).await;
        assert_eq!(inodes(&*next(&bed, 2).await), Some(3));

        bed.mounted("web", &[]);
        assert_eq!(names(&*next(&bed, 2).await), Vec::<&str>::new(), "what is unmounted is not told of");
    });
}

#[test]
fn without_a_period_volumes_are_not_measured() {
    run(1, |kernel| async move {
        let bed = with_volumes(None);
        bed.start(&kernel);
        bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        assert_eq!(names(&*next(&bed, 200).await), Vec::<&str>::new());
    });
}

#[test]
fn what_a_file_system_counts_is_not_walked() {
    run(1, |kernel| async move {
        let mut bed = with_volumes(Some(Duration::from_secs(60)));
        let quotas = Arc::new(FakeQuotas::default());
        let volumes = bed.config.root_dir.join("pods/uid-web/volumes");
        let counted = DiskUse { bytes: 12_345, inodes: 77 };
        for dir in ["kubernetes.io~empty-dir/scratch", "kubernetes.io~configmap/config"] {
            quotas.write(&volumes.join(dir), counted);
        }
        bed.deps.quotas = Some(quotas);
        bed.start(&kernel);
        bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        let summary = next(&bed, 2).await;
        let taken = |n: usize| (summary.pods[0].volumes[n].fs.used_bytes, summary.pods[0].volumes[n].fs.inodes_used);
        assert_eq!(taken(0), (Some(12_345), Some(77)));
        assert_eq!(taken(1).1, Some(2), "a directory without a project is walked");
        assert_eq!(taken(2).1, Some(2), "a project of an emptyDir is ours, another's may count anything");
    });
}
