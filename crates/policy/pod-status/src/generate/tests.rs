use serde_json::json;

use super::*;
use crate::testing::*;

fn running() -> Case {
    Case::new(app_pod("Never"), Seen::sandbox().with("app R 20 a"))
}

fn with_api(mut case: Case, api: PodStatus) -> Case {
    case.pod.status = Some(api);
    case
}

fn ended(phase: &str, reason: &str) -> PodStatus {
    status(json!({"phase": phase, "reason": reason, "message": format!("{reason} text")}))
}

fn told(case: &Case) -> (String, String, String) {
    let s = case.generate();
    (s.phase.unwrap(), s.reason.unwrap_or_default(), s.message.unwrap_or_default())
}

#[test]
fn phase_reason_and_message_rows() {
    let none = || (String::new(), String::new());
    let text = |reason: &str| (reason.to_owned(), format!("{reason} text"));
    let rows: Vec<(&str, Case, &str, (String, String))> = vec![
        ("fresh", running(), "Running", none()),
        ("9.4: base is terminal", running().base(ended("Failed", "Evicted")), "Failed", text("Evicted")),
        ("9.4: API is terminal", with_api(running(), ended("Succeeded", "Done")), "Succeeded", text("Done")),
        (
            "9.1 item 7: the API's terminal phase beats that of base",
            with_api(running(), ended("Succeeded", "Done")).base(ended("Failed", "Evicted")),
            "Succeeded",
            text("Done"),
        ),
        ("reason of an unchanged phase stays", running().base(ended("Running", "Why")), "Running", text("Why")),
        ("reason of another phase goes", running().base(ended("Pending", "Why")), "Running", none()),
        (
            "reason falls back to the API's of the same phase",
            with_api(running(), ended("Running", "Api")).base(base("Running", &[])),
            "Running",
            text("Api"),
        ),
    ];
    for (name, case, phase, (reason, message)) in rows {
        assert_eq!(told(&case), (phase.to_owned(), reason, message), "{name}");
    }
}

#[test]
fn active_deadline_rows() {
    let with = |deadline: Option<i64>, age_s: i64| {
        let mut case = running();
        case.pod.spec.as_mut().unwrap().active_deadline_seconds = deadline;
        let mut b = base("Running", &["app R - 0"]);
        b.start_time = Timestamp(NOW.0 - age_s * 1_000_000_000).to_api();
        case.base(b)
    };
    let over = ("Failed".to_owned(), "DeadlineExceeded".to_owned(), reasons::DEADLINE_MESSAGE.to_owned());
    let fine = ("Running".to_owned(), String::new(), String::new());
    assert_eq!(told(&with(None, 100)), fine, "no deadline");
    assert_eq!(told(&with(Some(60), 59)), fine, "before");
    assert_eq!(told(&with(Some(60), 60)), over, "at the deadline");
    assert_eq!(told(&with(Some(60), 600)), over, "after");
    let mut evicted = with(Some(60), 600);
    let b = evicted.base.as_mut().unwrap();
    (b.phase, b.reason) = (Some("Failed".into()), Some("Evicted".into()));
    assert_eq!(told(&evicted).1, "Evicted", "an end that was decided before keeps its reason");

    let mut fresh = with(Some(60), 0);
    fresh.base = None;
    assert_eq!(told(&fresh), fine, "no start time yet");
    let left = |case: &Case| active_deadline_left(&case.pod, case.base.as_ref().unwrap(), NOW);
    assert_eq!(left(&with(Some(60), 20)), Some(Duration::from_secs(40)));
    assert_eq!(left(&with(Some(60), 80)), Some(Duration::ZERO));
    assert_eq!(left(&with(None, 80)), None);
}

#[test]
fn start_time_comes_from_base_then_api_and_is_left_open_else() {
    let at = |secs| Timestamp::from_secs(secs).to_api();
    let b = PodStatus { start_time: at(5), ..PodStatus::default() };
    let api = PodStatus { start_time: at(6), ..PodStatus::default() };
    assert_eq!(running().generate().start_time, None);
    assert_eq!(with_api(running(), api.clone()).base(PodStatus::default()).generate().start_time, at(6));
    assert_eq!(with_api(running(), api).base(b).generate().start_time, at(5));
}

#[test]
fn qos_class_of_the_api_stays() {
    let api = status(json!({"qosClass": "Guaranteed"}));
    assert_eq!(with_api(running(), api).generate().qos_class.as_deref(), Some("Guaranteed"));
    assert_eq!(running().generate().qos_class.as_deref(), Some("BestEffort"));
}

#[test]
fn edge_78_a_deleting_pod_gets_its_final_phase_from_exit_codes() {
    let end = |codes: [&str; 2]| {
        let p = deleting(pod(json!({"restartPolicy": "Always", "containers": [{"name": "a"}, {"name": "b"}]})));
        let seen = Seen::nothing().with_sandbox("s0", 0, false);
        let seen = seen.with(&format!("a {} 20 a0", codes[0])).with(&format!("b {} 20 b0", codes[1]));
        Case::new(p, seen).terminal().generate().phase.unwrap()
    };
    assert_eq!(end(["X0", "X0"]), "Succeeded");
    assert_eq!(end(["X0", "X143"]), "Failed");
}

#[test]
fn edge_80_a_pod_deleted_while_creating_stays_pending_until_terminated() {
    let case = Case::new(deleting(app_pod("Always")), Seen::sandbox()).terminal();
    let status = case.generate();
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    assert_eq!(crate::patch::terminated(&case.pod, &status).phase.as_deref(), Some("Failed"));
}

#[test]
fn edge_90_a_static_pod_is_never_forced_into_a_terminal_phase() {
    let case = Case::new(as_static(app_pod("Always")), Seen::sandbox().with("app X1 20 a")).terminal();
    let status = case.generate();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(crate::patch::terminated(&case.pod, &status).phase.as_deref(), Some("Running"));
}

#[test]
fn an_exited_regular_container_of_an_older_sandbox_does_not_make_a_pending_sidecar_count() {
    let p = pod(json!({"restartPolicy": "Always", "containers": [{"name": "app"}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}]}));
    let old = Seen::nothing().with_sandbox("s0", 0, false).with_sandbox("s1", 1, true).with("app X1 20 a@s0");
    let rebooted = Case::new(p.clone(), old.with("s R 30 x@s1"));
    assert_eq!(rebooted.generate().phase.as_deref(), Some("Pending"));
    let same = Case::new(p, Seen::sandbox().with("app X1 20 a").with("s R 30 x"));
    assert_eq!(same.generate().phase.as_deref(), Some("Running"));
}
