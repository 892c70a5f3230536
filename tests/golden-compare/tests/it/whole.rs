//! The whole node against the recordings.

use crate::node::{Observed, drive};
use crate::normal::{Dirs, differences, steps};
use crate::recording::{Case, NODE, case};
use crate::script::scripts;

fn call_differences(case: &Case, ours: &Observed) -> Vec<String> {
    let recorded = steps(&case.calls, &Dirs::default(), (!case.is_static()).then_some(NODE));
    differences(&recorded, &steps(&ours.calls, &ours.dirs, None))
}

#[test]
fn the_node_asks_the_runtime_for_what_a_kubelet_asked() {
    if std::env::var("TRACE").is_ok() {
        tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG).init();
    }
    let only = std::env::var("CASE").ok();
    for script in scripts() {
        if only.as_ref().is_some_and(|o| o != script.case) {
            continue;
        }
        let case = case(script.case);
        let ours = drive(&case, &script);
        println!("== {}", case.name);
        for d in call_differences(&case, &ours) {
            println!("  {d}");
        }
        if only.is_some() {
            for c in &ours.calls {
                println!("   {:.3} {} {}", c.start - 1767225602.0, c.rpc, c.request["container_id"]);
            }
            for e in &ours.events {
                println!("   {:?} {} {} {}", e.object, e.count, e.reason, e.message);
            }
            println!("{}", serde_json::to_string_pretty(&ours.status.as_ref().map(|s| (*s.status).clone())).unwrap());
        }
    }
}
