use std::path::Path;

use csi_api::registration::PluginInfo;
use proptest::prelude::*;

use super::{csi_driver, highest};

fn info(name: &str, endpoint: &str, versions: &[&str]) -> PluginInfo {
    PluginInfo {
        r#type: "CSIPlugin".into(),
        name: name.into(),
        endpoint: endpoint.into(),
        supported_versions: versions.iter().map(|v| (*v).to_owned()).collect(),
    }
}

fn refusal(mut info: PluginInfo, registered: Option<&str>) -> Option<String> {
    if info.endpoint.is_empty() {
        info.endpoint = "/r/x.sock".to_owned();
    }
    let versions: Vec<String> = registered.into_iter().map(str::to_owned).collect();
    let beside: &[&[String]] = if registered.is_some() { &[&versions] } else { &[] };
    csi_driver(&info, beside).err()
}

#[test]
fn the_highest_version_below_2_counts() {
    let rows: [(&[&str], Result<&str, &str>); 8] = [
        (&["1.0.0"], Ok("1.0.0")),
        (&["v1.2.0-rc1", "1.1"], Ok("1.2.0")),
        (&["0.3.0", "1.9.0", "1.10.0", "2.0.0"], Ok("1.10.0")),
        (&["x", "1.0.0"], Ok("1.0.0")),
        (&["0.3.0"], Err("highest supported version reported by driver is 0.3.0, must be v1.x")),
        (
            &["2.0.0"],
            Err("could not find a highest supported version from versions ([2.0.0]) reported by this driver: <nil>"),
        ),
        (
            &["x", "2.0.0"],
            Err(
                "could not find a highest supported version from versions ([x 2.0.0]) reported by this driver: could not parse \"x\" as version",
            ),
        ),
        (
            &["1"],
            Err(
                "could not find a highest supported version from versions ([1]) reported by this driver: could not parse \"1\" as version",
            ),
        ),
    ];
    for (versions, want) in rows {
        let versions: Vec<String> = versions.iter().map(|v| (*v).to_owned()).collect();
        let got = highest(&versions).map(|v| v.to_string());
        assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned), "{versions:?}");
    }
}

#[test]
fn what_may_not_be_registered_is_told_why() {
    let start = "validation failed for CSI Driver ";
    let rows = [
        (
            info("d.e", "/p/csi.sock", &[]),
            None,
            format!(
                "{start}d.e at endpoint /p/csi.sock: kubernetes.io/csi: ValidatePlugin for CSI driver \"d.e\" failed. \
                 Plugin returned an empty list for supported versions"
            ),
        ),
        (
            info("d.e", "", &["0.3", "zero"]),
            None,
            format!(
                "{start}d.e at endpoint /r/x.sock: kubernetes.io/csi: ValidatePlugin for CSI driver \"d.e\" failed. None of \
                 the versions specified [\"0.3\" \"zero\"] are supported. err=highest supported version reported by driver is \
                 0.3, must be v1.x"
            ),
        ),
        (
            info("d.e", "", &["1.0.0"]),
            Some("1.0.0"),
            format!(
                "{start}d.e at endpoint /r/x.sock: kubernetes.io/csi: ValidatePlugin for CSI driver \"d.e\" failed. Another \
                 driver with the same name is already registered with a higher supported version: \"1.0.0\""
            ),
        ),
    ];
    for (info, registered, want) in rows {
        assert_eq!(refusal(info, registered), Some(want));
    }
    assert_eq!(refusal(info("d.e", "", &["1.1.0"]), Some("1.0.0")), None, "a newer one may take over");
}

#[test]
fn a_name_that_could_lead_elsewhere_is_refused() {
    for name in ["", "..", "a/b", "a..b", "-a", "a-", "a b", "a\0", ".a", &"x".repeat(64)] {
        assert!(refusal(info(name, "", &["1.0.0"]), None).is_some(), "{name:?}");
    }
    for name in ["a", "disk.csi.example.com", "A-1.b", &"x".repeat(63)] {
        assert_eq!(refusal(info(name, "", &["1.0.0"]), None), None, "{name:?}");
    }
    for endpoint in ["csi.sock", "tcp://1.2.3.4:5", &format!("/{}", "x".repeat(107))] {
        assert!(refusal(info("a", endpoint, &["1.0.0"]), None).is_some(), "{endpoint}");
    }
}

proptest! {
    #[test]
    fn whatever_a_plugin_says_is_judged(name: String, endpoint: String, versions: Vec<String>) {
        let said = PluginInfo { r#type: "CSIPlugin".to_owned(), name, endpoint, supported_versions: versions };
        if csi_driver(&said, &[]).is_ok() {
            prop_assert!(!said.name.contains('/') && Path::new(&said.endpoint).is_absolute());
        }
    }
}
