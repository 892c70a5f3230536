use std::path::Path;

use serde_json::{Value, json};

use crate::{Config, Driver};

fn config(folder: &Path) -> Config {
    Config { folder: folder.join("driver"), registry: Some(folder.to_owned()), ..Config::default() }
}

#[tokio::test]
async fn it_serves_on_both_its_sockets_and_takes_them_away() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let registration = folder.path().join("dir.csi.bosun.test@reg.sock");
    assert!(driver.socket().exists() && registration.exists());
    let socket = driver.socket().to_owned();
    drop(driver);
    assert!(!socket.exists() && !registration.exists());
}

#[test]
fn a_configuration_may_be_short_and_has_no_words_that_mean_nothing() {
    let read = |v: Value| serde_json::from_value::<Config>(v);
    assert_eq!(read(json!({ "name": "a.b", "stage": false })).unwrap().versions, ["1.0.0"]);
    read(json!({ "stages": false })).unwrap_err();
}

#[test]
fn a_rule_reads_as_it_is_written() {
    let text = json!([{ "call": "NodeStageVolume", "times": 2, "effect": { "lost": 14 } }, { "call": "Probe", "effect": "hang" }]);
    let rules: Vec<crate::Rule> = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(rules[0].effect, crate::Effect::Lost(14));
    assert_eq!((rules[1].times, &rules[1].effect), (None, &crate::Effect::Hang));
}
