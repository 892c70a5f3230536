//! `bosun get plugins`.

use std::path::Path;

use anyhow::Result;
use model::Timestamp;
use server::local::PluginLine;

use crate::client::get;
use crate::columns::{age, now};
use crate::show::{Output, print, structured, table};

pub(super) async fn show(socket: &Path, output: Option<Output>) -> Result<()> {
    let list: Vec<PluginLine> = get(socket, "/v1/plugins").await?;
    if structured(output, &list)? {
        return Ok(());
    }
    if list.is_empty() {
        print("No plugins: the folder plugins_registry holds no socket.");
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["NAME", "TYPE", "STATE", "AGE", "MAX VOLUMES", "LAST ERROR"];
    if wide {
        header.extend(["VERSIONS", "NODE ID", "ENDPOINT", "SOCKET"]);
    }
    table(&header, list.iter().map(|plugin| row(plugin, now(), wide)).collect());
    Ok(())
}

fn row(plugin: &PluginLine, now: Timestamp, wide: bool) -> Vec<String> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let state = match plugin.registered_ns {
        Some(_) => "Registered".to_owned(),
        None if plugin.failures > 0 => format!("Refused ({}x)", plugin.failures),
        None => "Pending".to_owned(),
    };
    let mut row = vec![
        or_dash(&plugin.name),
        or_dash(&plugin.kind),
        state,
        plugin.registered_ns.map_or_else(|| "-".to_owned(), |at| age(now.nanos_since(Timestamp(at)))),
        plugin.max_volumes.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        plugin.error.clone().unwrap_or_else(|| "-".to_owned()),
    ];
    if wide {
        row.extend([
            or_dash(&plugin.versions.join(",")),
            or_dash(plugin.node_id.as_deref().unwrap_or_default()),
            or_dash(plugin.endpoint.as_deref().unwrap_or_default()),
            plugin.socket.clone(),
        ]);
    }
    row
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use server::local::PluginLine;

    use super::row;

    #[test]
    fn a_registered_driver_a_refused_plugin_and_one_that_has_not_spoken() {
        let line = |text| serde_json::from_value::<PluginLine>(text).unwrap();
        let now = Timestamp::from_secs(100);
        let driver = line(serde_json::json!({
            "socket": "/r/a.sock", "name": "a.b", "kind": "CSIPlugin", "versions": ["1.0.0"], "failures": 0,
            "registeredNs": 40_000_000_000_i64, "endpoint": "/p/csi.sock", "nodeId": "n", "maxVolumes": 5,
        }));
        let wide = ["a.b", "CSIPlugin", "Registered", "60s", "5", "-", "1.0.0", "n", "/p/csi.sock", "/r/a.sock"];
        assert_eq!(row(&driver, now, true), wide);
        let refused = line(serde_json::json!({
            "socket": "/r/b.sock", "name": "g", "kind": "DRAPlugin", "versions": [], "failures": 2, "error": "no handler",
        }));
        assert_eq!(row(&refused, now, false), ["g", "DRAPlugin", "Refused (2x)", "-", "-", "no handler"]);
        let silent =
            serde_json::json!({ "socket": "/r/c.sock", "name": "", "kind": "", "versions": [], "failures": 0 });
        assert_eq!(row(&line(silent), now, false), ["-", "-", "Pending", "-", "-", "-"]);
    }
}
