use model::core::PodStatus;

use crate::choose;

fn status(container: &str) -> PodStatus {
    serde_json::from_str(&format!("{{\"containerStatuses\":[{container}]}}")).unwrap()
}

#[test]
fn each_state_has_its_instance_or_its_words() {
    let t = |id: &str| format!(r#"{{"terminated":{{"exitCode":0,"containerID":"{id}"}}}}"#);
    let c = |state: &str, last: &str| {
        format!(
            r#"{{"name":"c","image":"","imageID":"","ready":false,"restartCount":0,"containerID":"r://now","state":{state},"lastState":{last}}}"#
        )
    };
    let waiting = |reason: &str| format!(r#"{{"waiting":{{"reason":"{reason}"}}}}"#);
    let running = r#"{"running":{}}"#;
    let rows: Vec<(&str, String, bool, Result<&str, &str>)> = vec![
        ("running", c(running, "{}"), false, Ok("r://now")),
        ("previous", c(running, &t("r://last")), true, Ok("r://last")),
        (
            "previous of one that never restarted",
            c(running, "{}"),
            true,
            Err(r#"previous terminated container "c" in pod "p" not found"#),
        ),
        (
            "previous without an id",
            c(running, &t("")),
            true,
            Err(r#"previous terminated container "c" in pod "p" not found"#),
        ),
        ("terminated", c(&t("r://done"), &t("r://last")), false, Ok("r://done")),
        ("terminated without an id", c(&t(""), &t("r://last")), false, Ok("r://last")),
        ("terminated without any id", c(&t(""), "{}"), false, Err(r#"container "c" in pod "p" is terminated"#)),
        ("crash loop", c(&waiting("CrashLoopBackOff"), &t("r://last")), false, Ok("r://last")),
        (
            "crash loop without an id",
            c(&waiting("CrashLoopBackOff"), &t("")),
            false,
            Err(r#"container "c" in pod "p" is terminated"#),
        ),
        (
            "no image",
            c(&waiting("ErrImagePull"), "{}"),
            false,
            Err(r#"container "c" in pod "p" is waiting to start: image can't be pulled"#),
        ),
        (
            "no image for long",
            c(&waiting("ImagePullBackOff"), "{}"),
            false,
            Err(r#"container "c" in pod "p" is waiting to start: trying and failing to pull image"#),
        ),
        (
            "being made",
            c(&waiting("ContainerCreating"), "{}"),
            false,
            Err(r#"container "c" in pod "p" is waiting to start: ContainerCreating"#),
        ),
        ("no state", c("{}", "{}"), false, Err(r#"container "c" in pod "p" is waiting to start - no logs yet"#)),
    ];
    for (name, container, previous, expected) in rows {
        let found = choose(&status(&container), "p", "c", previous);
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{name}");
    }
}

#[test]
fn containers_of_all_kinds_are_found() {
    let text = r#"{"initContainerStatuses":[{"name":"i","image":"","imageID":"","ready":false,"restartCount":0,
        "state":{"terminated":{"exitCode":0,"containerID":"r://i"}}}],"ephemeralContainerStatuses":[{"name":"e","image":"",
        "imageID":"","ready":false,"restartCount":0,"containerID":"r://e","state":{"running":{}}}]}"#;
    let status: PodStatus = serde_json::from_str(text).unwrap();
    assert_eq!(choose(&status, "p", "i", false), Ok("r://i".to_owned()));
    assert_eq!(choose(&status, "p", "e", false), Ok("r://e".to_owned()));
    let text = r#"container "x" in pod "p" is not available"#;
    assert_eq!(choose(&status, "p", "x", false), Err(text.to_owned()));
}
