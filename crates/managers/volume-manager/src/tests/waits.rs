//! How long a pod waits between two tries on a volume.

use std::time::Duration;

use ports::grpc::Code;
use serde_json::json;
use tokio::time::Instant;

use super::cluster::{pod_of, pod_with, secs, spawn, with_cluster};
use super::csi::Lie;

/// Pauses of the volume double from half a second on, whoever asks for it: the ninth try comes 127.5 s after the first.
#[test]
fn a_volume_is_tried_again_when_its_own_pause_is_over_whenever_its_pod_came_back() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let pod = pod_with("u1", &["a"]);
        c.csi.lie("stage", &[Lie::Refuse(Code::Internal); 8]);
        let began = Instant::now();
        let e = c.mount(&pod).await.unwrap_err();
        assert!(e.late && e.message.ends_with("code = Internal desc = because"), "{e}");
        let staged = |calls: Vec<String>| calls.iter().filter(|call| *call == "stage h-a").count();
        assert_eq!(staged(c.csi.calls()), 8, "at 0, 0.5, 1.5 and so on, up to 63.5 s");
        // As its worker does. Pauses of this wait, had it any of its own, would meet the volume's end only much later.
        secs(10).await;
        c.mount(&pod).await.unwrap();
        let took = began.elapsed();
        assert!((127_500..128_500).contains(&took.as_millis()), "{took:?}");
        assert_eq!(staged(c.csi.calls()), 1);
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

/// Its pauses are the wait's own, and begin anew with each.
#[test]
fn what_has_no_pause_of_its_own_is_not_held_up_by_what_has() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.csi.lie("stage", &[Lie::Refuse(Code::Internal); 8]);
        c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
        c.bench.told();
        let path = c.host.path("late");
        let volumes = vec![
            json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } }),
            json!({ "name": "h", "hostPath": { "path": path.to_str(), "type": "Directory" } }),
        ];
        let waiting = spawn(&c, &pod_of("u1", volumes, json!({})));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let told = c.bench.told();
        assert_eq!(told.len(), 4, "at 0, 0.5, 1.5 and 3.5 s of the directory alone: {told:?}");
        assert!(told.iter().all(|line| line.contains("hostPath type check failed")), "{told:?}");
        waiting.abort();
    });
}
