//! Where pods stand, asked as a user asks: `bosun why` and `bosun timeline` on a real containerd.

use serde_json::Value;
use testbed::wait_until;

use crate::node::{Node, SOON, shell};

fn json(node: &Node, verb: &str, pod: &str) -> Result<Value, String> {
    let text = node.bosun.cli(&[verb, pod, "-o", "json"]).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))
}

/// Waits for the cause; answers all that is said.
fn says(node: &Node, pod: &str, cause: &str) -> String {
    wait_until(&format!("why of {pod} to be {cause}"), SOON, || match json(node, "why", pod) {
        Ok(verdict) if verdict["cause"] == cause => Ok(verdict.to_string()),
        other => Err(format!("{other:?}")),
    })
    .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn users_are_told_why_a_pod_does_not_run_and_what_its_life_was() {
    let mut node = Node::start();
    node.put("missing", "  containers:\n  - {name: main, image: 'registry.invalid/none:1', imagePullPolicy: Never}\n");
    node.put("crashes", &format!("  containers:\n{}", shell("main", "echo no config; exit 3", "")));
    let probe = "    readinessProbe: {exec: {command: ['false']}, periodSeconds: 1}\n";
    node.put("unready", &format!("  containers:\n{}", shell("main", "exec sleep 1000", probe)));
    node.put("well", &format!("  containers:\n{}", shell("main", "exec sleep 1000", "")));
    node.wait_running("well");
    assert!(says(&node, "missing", "ImageMissing").contains("registry.invalid/none:1"));
    assert!(says(&node, "crashes", "CrashLoop").contains("exited with code 3"));
    assert!(says(&node, "unready", "ProbeFailing").contains("readiness probe of container main fails"));
    says(&node, "well", "Ready");
    let text = node.bosun.cli(&["why", "missing"]).expect("an answer");
    assert!(text.contains("image-manager") && text.contains("bosun timeline default/missing-bed"), "{text}");
    let refused = node.bosun.cli(&["why", "wel"]).expect_err("there is none").to_string();
    assert!(refused.contains("did you mean default/well-bed?"), "{refused}");

    let labels = |life: &Value| -> Vec<String> {
        let bars = life["bars"].as_array().into_iter().flatten();
        bars.filter_map(|b| b["label"].as_str().map(str::to_owned)).collect()
    };
    let before = labels(&json(&node, "timeline", "well").expect("a life"));
    for step in ["admitted", "sandbox", "create", "start", "running", "ready"] {
        assert!(before.iter().any(|label| label == step), "{step}: {before:?}");
    }
    // What took place is known to the next daemon.
    node.bosun.kill();
    node.bosun.start_again(&mut node.bed).expect("starts again");
    node.wait_running("well");
    let after = labels(&json(&node, "timeline", "well").expect("a life"));
    assert!(before.iter().all(|label| after.contains(label)), "{before:?} {after:?}");
    let page = node.bed.dir().join("life.html");
    node.bosun.cli(&["timeline", "crashes", "--html", &page.to_string_lossy()]).expect("a page");
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("crashes-bed") && !html.contains("://"), "{html}");
}
