use axum::response::{IntoResponse, Response};

use super::*;
use crate::Command;
use crate::tests::{Fake, refuse};

const LINE: &str = r#"{"name":"probes","role":"ProbeManager","servedBy":"unix:///run/a.sock","program":"acme\u001b[2J 1.0","away":null,
    "sinceNs":0,"chosen":"unix:///run/a.sock","chosenBy":"command","afterRestart":"builtin, as the configuration says",
    "before":"builtin","probationLeftMs":41200,"asked":[{"message":"StartProbes","answered":20,"failed":0,"expired":0,"lost":1,
    "halfWithinUs":512,"mostWithinUs":2048}],"remembered":20,"refused":{"rows":1,"calls":0,"answers":0,"keys":2},
    "history":[{"atNs":0,"text":"ProbeManager is served by unix:///run/a.sock now"}],"shadow":null,"newer":1}"#;

fn daemon(path: &str) -> Response {
    match path {
        "/v1/managers" => format!("[{LINE}]").into_response(),
        "/v1/managers/probes" => LINE.into_response(),
        "/v1/managers/probes/swap" | "/v1/managers/probes/rollback" => r#"{"lines":["done\u001b[2J"]}"#.into_response(),
        _ => refuse(404, "no manager \"probs\" may be served elsewhere; did you mean probes?"),
    }
}

fn line() -> ManagerLine {
    serde_json::from_str(LINE).unwrap()
}

#[test]
fn what_is_shown_is_aligned_and_nothing_in_it_moves_a_cursor() {
    let mut shown = screen(&line());
    assert!(shown.remove(2).starts_with("Since:           "));
    let expected = [
        "Name:            probes (ProbeManager)",
        "Served by:       unix:///run/a.sock",
        "State:           on probation, 42 s left",
        "Chosen:          unix:///run/a.sock (by command)",
        "After a restart: builtin, as the configuration says",
        "Program:         acme [2J 1.0",
        "Rollback:        to builtin",
        "Remembered:      20 messages, told to whoever takes the place",
        "Refused:         1 rows, 0 messages, 0 answers, 2 keys",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn the_state_says_who_is_missing() {
    let quiet = ManagerLine { probation_left_ms: None, ..line() };
    assert_eq!(state(&quiet), "in force");
    assert_eq!(state(&ManagerLine { away: Some("killed".into()), ..quiet.clone() }), "away");
    assert_eq!(state(&ManagerLine { served_by: "builtin".into(), ..quiet }), "unix:///run/a.sock is away");
}

#[tokio::test]
async fn each_verb_asks_the_daemon_and_a_refusal_is_told_in_its_words() {
    let fake = Fake::start(daemon);
    for words in [
        "manager list",
        "manager list -o wide",
        "manager status",
        "manager status probes -o json",
        "manager swap probes --to unix:///run/a.sock --dry-run --probation 5m",
        "manager swap probes --to builtin -o yaml",
        "manager rollback probes",
    ] {
        let Command::Manager(args) = fake.command(words) else { panic!() };
        run(&args).await.unwrap_or_else(|e| panic!("{words}: {e:#}"));
    }
    let verbs = ["", "", "", "/probes", "/probes/swap", "/probes/swap", "/probes/rollback"];
    assert_eq!(fake.asked(), verbs.map(|verb| format!("/v1/managers{verb}")));
    let Command::Manager(args) = fake.command("manager status probs") else { panic!() };
    let error = run(&args).await.unwrap_err();
    assert!(error.to_string().contains("did you mean probes?"), "{error:#}");
}
