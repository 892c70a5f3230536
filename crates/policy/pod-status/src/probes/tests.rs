use model::core::Pod;
use serde_json::json;

use super::*;
use crate::testing::*;
use model::probe::ProbeVerdict::{Failure, Success, Unknown};

fn flags(case: &Case) -> (bool, bool) {
    let status = case.generate();
    let c = &status.container_statuses.unwrap()[0];
    (c.started.unwrap(), c.ready)
}

fn was(short: &str, started: bool, ready: bool) -> PodStatus {
    let mut b = base("Running", &[short]);
    let c = &mut b.container_statuses.as_mut().unwrap()[0];
    (c.started, c.ready) = (Some(started), ready);
    b
}

#[test]
fn started_and_ready_rows() {
    let run = || Case::new(app_pod("Always"), Seen::sandbox().with("app R 20 app-old"));
    let exited = || Case::new(app_pod("Always"), Seen::sandbox().with("app X0 20 app-old"));
    // (name, case, (started, ready))
    let rows: Vec<(&str, Case, (bool, bool))> =
        vec![
            ("no probes", run(), (true, true)),
            ("not running", exited().base(was("app R - 0", true, true)), (false, false)),
            ("startup succeeded", run().startup("app", "app-old", Some(Success)), (true, true)),
            ("startup failed", run().startup("app", "app-old", Some(Failure)), (false, false)),
            ("startup undecided", run().startup("app", "app-old", Some(Unknown)), (false, false)),
            ("startup probe without a result", run().startup("app", "app-old", None), (false, false)),
            (
                "startup probe without a result, had started before",
                run().startup("app", "app-old", None).base(was("app R - 0", true, false)),
                (true, true),
            ),
            (
                "had started before, but that was another instance",
                Case::new(app_pod("Always"), Seen::sandbox().with("app R 20 new"))
                    .startup("app", "new", None)
                    .base(was("app R - 0", true, false)),
                (false, false),
            ),
            ("readiness succeeded", run().readiness("app", "app-old", Some(Success)), (true, true)),
            ("readiness failed", run().readiness("app", "app-old", Some(Failure)), (true, false)),
            ("readiness probe without a result", run().readiness("app", "app-old", None), (true, false)),
            (
                "edge 70: ready before the daemon restarted stays ready",
                run().readiness("app", "app-old", None).base(was("app R - 0", true, true)),
                (true, true),
            ),
            (
                "a recorded failure beats ready before",
                run().readiness("app", "app-old", Some(Failure)).base(was("app R - 0", true, true)),
                (true, false),
            ),
        ];
    for (name, case, expected) in rows {
        assert_eq!(flags(&case), expected, "{name}");
    }
}

#[test]
fn plain_init_containers_are_ready_when_done_and_sidecars_like_regular_ones() {
    let p: Pod = pod(json!({"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "app"}]}));
    let flags = |seen: Seen| {
        let list = Case::new(p.clone(), seen).generate().init_container_statuses.unwrap();
        [(list[0].started, list[0].ready), (list[1].started, list[1].ready)]
    };
    let running = flags(Seen::sandbox().with("i R 20 i1").with("s R 21 s1"));
    assert_eq!(running, [(Some(true), false), (Some(true), true)]);
    let done = flags(Seen::sandbox().with("i X0 20 i1").with("s X0 21 s1"));
    assert_eq!(done, [(Some(false), true), (Some(false), false)]);
    let failed = flags(Seen::sandbox().with("i X1 20 i1"));
    assert_eq!(failed[0], (Some(false), false));
}

#[test]
fn a_started_container_without_a_readiness_success_asks_for_a_probe_at_once() {
    let case = Case::new(app_pod("Always"), Seen::sandbox().with("app R 20 x"));
    let ask = |case: &Case| readiness_to_trigger(&case.generate(), &case.probes);
    let wanted = vec![("app".to_owned(), ContainerId::from("x"))];
    assert_eq!(ask(&case.clone()), vec![]);
    assert_eq!(ask(&case.clone().readiness("app", "x", None)), wanted);
    assert_eq!(ask(&case.clone().readiness("app", "x", Some(Failure))), wanted);
    assert_eq!(ask(&case.clone().readiness("app", "x", Some(Success))), vec![]);
    assert_eq!(ask(&case.readiness("app", "x", None).startup("app", "x", Some(Failure))), vec![]);
}
