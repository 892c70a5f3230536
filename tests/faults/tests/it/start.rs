//! How a pod starts.

use sim::{LIMIT, SimNode};

const WEB: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: app:1}
";

#[test]
fn a_pod_of_a_file_is_started_in_the_order_of_the_book() {
    actor::testing::run(1, |kernel| async move {
        sim::log_to_stderr();
        let node = SimNode::start(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        node.put("web.yaml", WEB);
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.steps("web"), ["RunPodSandbox", "CreateContainer app", "StartContainer app"]);
    });
}
