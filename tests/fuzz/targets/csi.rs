//! What plugins and CSI drivers say, and what they left on the disk: decoded and judged without a panic, whatever it is.

#![no_main]

use csi_api::registration::PluginInfo;
use csi_api::v1;
use libfuzzer_sys::fuzz_target;
use model::Timestamp;
use plugin_manager::reading::{csi_driver, told};
use prost::Message;
use stats_manager::reading::usage;
use volume_plan::data;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => {
            if let Ok(info) = PluginInfo::decode(bytes)
                && csi_driver(&info, &[]).is_ok()
            {
                assert!(!info.name.is_empty() && info.name.len() <= 63 && !info.name.contains(['/', '\0']));
                assert!(info.endpoint.starts_with('/'));
                let again = csi_driver(&info, &[&info.supported_versions]);
                assert!(again.is_err(), "none takes the place of one of its own version");
            }
        }
        1 => {
            if let Ok(said) = v1::NodeGetInfoResponse::decode(bytes) {
                let object = told("d.example", said);
                let [driver] = object.spec.drivers.as_slice() else { panic!("one driver") };
                assert!(driver.allocatable.iter().all(|a| a.count > Some(0)));
            }
        }
        2 => {
            if let Ok(said) = v1::NodeGetVolumeStatsResponse::decode(bytes) {
                let _stats = usage(&said.usage, Timestamp(0));
            }
        }
        3 => drop(v1::NodeGetCapabilitiesResponse::decode(bytes)),
        _ => {
            if let Ok(found) = data::read(bytes) {
                assert!(!found.driver.is_empty() && !found.handle.is_empty());
            }
        }
    }
});
