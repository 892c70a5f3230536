//! Raw volumes of a container (node-and-resources 6.13, Block).

use std::collections::BTreeMap;

use cri_api::v1::Device;
use model::core::Container;

/// A raw volume that cannot be given to a container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// `devicePath` does not start with `/`.
    #[error("error DevicePath `{0}` must be an absolute path")]
    RelativePath(String),
    /// The volume is not mapped, or not known.
    #[error("cannot find volume {volume:?} to pass into container {container:?}")]
    NoVolume {
        /// Name of the volume.
        volume: String,
        /// Name of the container.
        container: String,
    },
}

/// A raw volume of the pod that is on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawVolume {
    /// Absolute path of the device or of a link to it.
    pub host_path: String,
    /// The pod wants it read-only.
    pub read_only: bool,
}

/// Devices for the runtime, in the order of `volumeDevices`. `volumes`: raw volumes of the pod by name.
///
/// # Errors
/// The first one that cannot be had.
pub fn volume_devices(
    container: &Container,
    volumes: &BTreeMap<String, RawVolume>,
) -> Result<Vec<Device>, DeviceError> {
    let one = |wanted: &model::core::VolumeDevice| {
        if !wanted.device_path.starts_with('/') {
            return Err(DeviceError::RelativePath(wanted.device_path.clone()));
        }
        let Some(volume) = volumes.get(&wanted.name) else {
            return Err(DeviceError::NoVolume { volume: wanted.name.clone(), container: container.name.clone() });
        };
        Ok(Device {
            container_path: wanted.device_path.clone(),
            host_path: volume.host_path.clone(),
            permissions: if volume.read_only { "r" } else { "mrw" }.to_owned(),
        })
    };
    container.volume_devices.iter().flatten().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(wanted: Value) -> Result<Vec<(String, String, String)>, String> {
        let container = serde_json::from_value(json!({ "name": "app", "volumeDevices": wanted })).unwrap();
        let raw = |path: &str, read_only| RawVolume { host_path: path.to_owned(), read_only };
        let volumes = [("a".to_owned(), raw("/h/a", false)), ("b".to_owned(), raw("/h/b", true))].into();
        let devices = volume_devices(&container, &volumes).map_err(|e| e.to_string())?;
        Ok(devices.into_iter().map(|d| (d.container_path, d.host_path, d.permissions)).collect())
    }

    #[test]
    fn a_container_is_given_what_it_names() {
        let row = |inside: &str, host: &str, may: &str| (inside.to_owned(), host.to_owned(), may.to_owned());
        let both = json!([{ "name": "b", "devicePath": "/dev/y" }, { "name": "a", "devicePath": "/dev/x" }]);
        assert_eq!(of(both), Ok(vec![row("/dev/y", "/h/b", "r"), row("/dev/x", "/h/a", "mrw")]));
        assert_eq!(of(json!(null)), Ok(vec![]));
        for (wanted, why) in [
            (json!({ "name": "a", "devicePath": "x" }), "error DevicePath `x` must be an absolute path"),
            (json!({ "name": "c", "devicePath": "/x" }), "cannot find volume \"c\" to pass into container \"app\""),
        ] {
            assert_eq!(of(json!([wanted])), Err(why.to_owned()));
        }
    }
}
