//! `bosun get volumes`.

use std::path::Path;

use anyhow::Result;
use model::Timestamp;
use server::local::VolumeLine;

use crate::client::get;
use crate::columns::{age, now};
use crate::show::{Output, print, structured, table};

pub(super) async fn show(socket: &Path, output: Option<Output>) -> Result<()> {
    let list: Vec<VolumeLine> = get(socket, "/v1/volumes").await?;
    if structured(output, &list)? {
        return Ok(());
    }
    if list.is_empty() {
        print("No volumes: no pod uses one, and no CSI driver has one here.");
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["POD", "VOLUME", "KIND", "DRIVER", "STAGE", "SINCE", "CALL", "LAST ERROR"];
    if wide {
        header.extend(["CLAIM", "HANDLE", "PATH"]);
    }
    table(&header, list.iter().map(|volume| row(volume, now(), wide)).collect());
    Ok(())
}

fn row(volume: &VolumeLine, now: Timestamp, wide: bool) -> Vec<String> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let ago = |at: i64| age(now.nanos_since(Timestamp(at)));
    let call = volume.call.as_ref().map(|name| match volume.call_since_ns {
        Some(at) => format!("{name} ({})", ago(at)),
        None => name.clone(),
    });
    let mut row = vec![
        or_dash(&volume.pod),
        or_dash(&volume.volume),
        or_dash(&volume.kind),
        or_dash(&volume.driver),
        volume.stage.clone(),
        volume.since_ns.map_or_else(|| "-".to_owned(), ago),
        call.unwrap_or_else(|| "-".to_owned()),
        volume.error.clone().unwrap_or_else(|| "-".to_owned()),
    ];
    if wide {
        row.extend([
            or_dash(&volume.claim),
            or_dash(&volume.handle),
            or_dash(volume.path.as_deref().unwrap_or_default()),
        ]);
    }
    row
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use server::local::VolumeLine;

    use super::row;

    #[test]
    fn a_volume_that_hangs_one_that_is_there_and_one_that_nobody_can_read() {
        let line = |text| serde_json::from_value::<VolumeLine>(text).unwrap();
        let now = Timestamp::from_secs(100);
        let hangs = line(serde_json::json!({
            "pod": "shop/web", "volume": "data", "kind": "csi", "driver": "d.example", "handle": "h1", "claim": "c",
            "stage": "Uncertain", "sinceNs": 40_000_000_000_i64, "call": "NodeStageVolume", "callSinceNs": 65_000_000_000_i64,
        }));
        let wide =
            ["shop/web", "data", "csi", "d.example", "Uncertain", "60s", "NodeStageVolume (35s)", "-", "c", "h1", "-"];
        assert_eq!(row(&hangs, now, true), wide);
        let there =
            line(serde_json::json!({ "pod": "shop/web", "volume": "tmp", "kind": "emptyDir", "stage": "Mounted" }));
        assert_eq!(row(&there, now, false), ["shop/web", "tmp", "emptyDir", "-", "Mounted", "-", "-", "-"]);
        let unread = line(serde_json::json!({
            "pod": "u7", "volume": "", "kind": "csi", "stage": "Unreadable", "path": "/p", "error": "not JSON",
        }));
        let wide = ["u7", "-", "csi", "-", "Unreadable", "-", "-", "not JSON", "-", "-", "/p"];
        assert_eq!(row(&unread, now, true), wide);
    }
}
