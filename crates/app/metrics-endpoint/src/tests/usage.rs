use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Handler, Spec, supervised};
use contract::stats::{StatsError, StatsHandle, Summarise};
use model::stats::{ContainerStats, FsStats, PodReference, PodStats, PvcReference, Summary, VolumeStats};

use crate::{Usage, usage_of_stats};

fn fs(used: u64) -> FsStats {
    FsStats { used_bytes: Some(used), ..FsStats::default() }
}

fn pod(name: &str, claim: Option<&str>, logs: Option<u64>) -> PodStats {
    let pvc_ref = claim.map(|c| PvcReference { name: c.into(), namespace: "shop".into() });
    PodStats {
        pod_ref: PodReference { name: name.into(), namespace: "shop".into(), uid: format!("uid-{name}") },
        volumes: vec![VolumeStats { fs: fs(5), name: "v".into(), pvc_ref }],
        containers: vec![ContainerStats { name: "app".into(), logs: logs.map(fs), ..ContainerStats::default() }],
        ..PodStats::default()
    }
}

/// Answers with as many bytes of logs as it was asked times.
#[derive(Default)]
struct Stats(u64);
impl Actor for Stats {
    type Context = Ctx<Self>;
}
supervised!(Stats);
impl Handler<Summarise> for Stats {
    type Result = Result<Arc<Summary>, StatsError>;
    fn handle(&mut self, _: Summarise, _: &mut Ctx<Self>) -> Self::Result {
        self.0 += 1;
        Ok(Arc::new(Summary { pods: vec![pod("a", None, Some(self.0))], ..Summary::default() }))
    }
}

#[test]
fn a_claim_of_several_pods_is_told_once_and_unknown_logs_not_at_all() {
    let pods = vec![pod("a", Some("data"), Some(7)), pod("b", Some("data"), None), pod("c", None, Some(0))];
    let usage = Usage::from(&Summary { pods, ..Summary::default() });
    let claims: Vec<_> = usage.claims.iter().map(|c| (c.claim.as_str(), c.used_bytes, c.capacity_bytes)).collect();
    assert_eq!(claims, [("data", Some(5), None)]);
    let logs: Vec<_> = usage.logs.iter().map(|l| (l.uid.as_str(), l.container.as_str(), l.used_bytes)).collect();
    assert_eq!(logs, [("uid-a", "app", 7), ("uid-c", "app", 0)]);
}

#[test]
fn usage_is_gathered_once_a_minute_at_most() {
    actor::testing::run(1, |kernel| async move {
        let stats = StatsHandle::default();
        stats.summarise.connect(&kernel.spawn(Spec::new("stats"), |_| Stats::default()));
        let source = usage_of_stats(stats);
        let used = async || source().await.logs[0].used_bytes;
        assert_eq!([used().await, used().await], [1, 1]);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(used().await, 2);
    });
}

#[test]
fn a_stats_manager_that_is_not_there_leaves_the_families_out() {
    actor::testing::run(1, |_kernel| async move {
        assert_eq!(usage_of_stats(StatsHandle::default())().await, Usage::default());
    });
}
