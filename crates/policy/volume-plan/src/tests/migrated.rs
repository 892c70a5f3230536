//! Kinds that CSI drivers took over: what the drivers are asked for.

use model::core::{PersistentVolume, Volume};
use serde_json::{Value, json};

use crate::migration::of_volume;
use crate::source::{Resolved, Source, of_persistent_volume};

/// Driver, handle, file system, attributes.
fn told(volume: &Resolved) -> Value {
    let Source::Csi(csi) = &volume.source else { panic!("{volume:?}") };
    assert!(!csi.is_inline, "it outlives the pod");
    json!([csi.driver, csi.handle, csi.fs_type, csi.attributes])
}

fn persistent(meta: Value, spec: Value) -> Result<Resolved, String> {
    let mut meta = meta;
    meta["name"] = json!("pv1");
    let volume: PersistentVolume = serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap();
    of_persistent_volume(&volume, false)
}

fn inline(source: Value) -> Result<Resolved, String> {
    let mut volume = source;
    volume["name"] = json!("v");
    let volume: Volume = serde_json::from_value(volume).unwrap();
    of_volume("shop", &volume).expect("a kind that a driver took over")
}

#[test]
fn a_persistent_volume_goes_to_its_driver() {
    let zone = |zone: &str| json!({ "labels": { "topology.kubernetes.io/zone": zone } });
    let gce = json!({ "gcePersistentDisk": { "pdName": "d1", "fsType": "ext4", "partition": 2 } });
    let handle = |place: &str| format!("projects/UNSPECIFIED/{place}/disks/d1");
    let disk = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d1";
    for (meta, spec, want) in [
        (
            json!({}),
            json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "xfs", "partition": 3 } }),
            json!(["ebs.csi.aws.com", "vol-1", "xfs", { "partition": "3" }]),
        ),
        (
            json!({}),
            json!({ "awsElasticBlockStore": { "volumeID": "aws://us-east-1a/vol-2" } }),
            json!(["ebs.csi.aws.com", "vol-2", "", { "partition": "0" }]),
        ),
        (
            json!({}),
            json!({ "azureDisk": { "diskName": "d1", "diskURI": disk, "kind": "managed", "cachingMode": "ReadOnly", "fsType": "ext4" } }),
            json!(["disk.csi.azure.com", disk, "ext4", { "kind": "Managed", "cachingmode": "ReadOnly", "fstype": "ext4" }]),
        ),
        (
            json!({ "annotations": { "kubernetes.io/azure-file-resource-group": "rg" } }),
            json!({ "azureFile": { "secretName": "azure-storage-account-acc-secret", "shareName": "s", "secretNamespace": "ns" } }),
            json!(["file.csi.azure.com", "rg#acc#s#pv1#ns", "", { "sharename": "s" }]),
        ),
        (
            json!({}),
            json!({ "azureFile": { "secretName": "mine", "shareName": "s" }, "claimRef": { "namespace": "of-claim" } }),
            json!(["file.csi.azure.com", "#mine#s#pv1#of-claim", "", { "sharename": "s" }]),
        ),
        (
            json!({}),
            json!({ "cinder": { "volumeID": "c1", "fsType": "ext4" } }),
            json!(["cinder.csi.openstack.org", "c1", "ext4", {}]),
        ),
        (
            json!({}),
            gce.clone(),
            json!(["pd.csi.storage.gke.io", handle("zones/UNSPECIFIED"), "ext4", { "partition": "2" }]),
        ),
        (
            zone("europe-west1-b"),
            gce.clone(),
            json!(["pd.csi.storage.gke.io", handle("zones/europe-west1-b"), "ext4", { "partition": "2" }]),
        ),
        (
            zone("europe-west1-b__europe-west1-c"),
            json!({ "gcePersistentDisk": { "pdName": "d1" } }),
            json!(["pd.csi.storage.gke.io", handle("regions/europe-west1"), "", { "partition": "" }]),
        ),
        (
            json!({}),
            json!({ "portworxVolume": { "volumeID": "p1", "fsType": "ext4" } }),
            json!(["pxd.portworx.com", "p1", "ext4", {}]),
        ),
        (
            json!({}),
            json!({ "vsphereVolume": { "volumePath": "[ds] a/b.vmdk", "fsType": "ext4", "storagePolicyName": "gold" } }),
            json!(["csi.vsphere.vmware.com", "[ds] a/b.vmdk", "ext4", { "storagepolicyname": "gold" }]),
        ),
    ] {
        let found = persistent(meta, spec.clone()).unwrap();
        assert_eq!((told(&found), found.name.as_str()), (want, "pv1"), "{spec}");
    }
}

#[test]
fn a_volume_in_a_pod_goes_to_its_driver_by_a_name_of_its_own() {
    for (source, name, mode, want) in [
        (
            json!({ "awsElasticBlockStore": { "volumeID": "aws:///vol-1", "readOnly": true } }),
            "ebs.csi.aws.com-vol-1",
            "ReadWriteOnce",
            json!(["ebs.csi.aws.com", "vol-1", "", { "partition": "0" }]),
        ),
        (
            json!({ "azureDisk": { "diskName": "d", "diskURI": "/a/b" } }),
            "/a/b",
            "ReadWriteOnce",
            json!(["disk.csi.azure.com", "/a/b", "", { "kind": "Managed" }]),
        ),
        (
            json!({ "azureFile": { "secretName": "mine", "shareName": "s" } }),
            "#mine#s#v#shop",
            "ReadWriteMany",
            json!(["file.csi.azure.com", "#mine#s#v#shop", "", { "sharename": "s" }]),
        ),
        (
            json!({ "cinder": { "volumeID": "c1" } }),
            "cinder.csi.openstack.org-c1",
            "ReadWriteOnce",
            json!(["cinder.csi.openstack.org", "c1", "", {}]),
        ),
        (
            json!({ "gcePersistentDisk": { "pdName": "d1", "readOnly": true } }),
            "pd.csi.storage.gke.io-d1",
            "ReadOnlyMany",
            json!(["pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d1", "", { "partition": "" }]),
        ),
        (
            json!({ "portworxVolume": { "volumeID": "p1" } }),
            "pxd.portworx.com-p1",
            "ReadWriteOnce",
            json!(["pxd.portworx.com", "p1", "", {}]),
        ),
        (
            json!({ "vsphereVolume": { "volumePath": "[ds] a/b" } }),
            "csi.vsphere.vmware.com-[ds] a/b",
            "ReadWriteOnce",
            json!(["csi.vsphere.vmware.com", "[ds] a/b", "", {}]),
        ),
    ] {
        let found = inline(source.clone()).unwrap();
        assert_eq!((found.name.as_str(), told(&found)), (name, want), "{source}");
        assert_eq!((found.access_modes, found.read_only), (vec![mode.to_owned()], false), "{source}");
    }
    let other: Volume = serde_json::from_value(json!({ "name": "v", "nfs": { "server": "s", "path": "/" } })).unwrap();
    assert!(of_volume("shop", &other).is_none());
}

#[test]
fn secrets_come_along() {
    let of = |meta: Value, spec: Value| {
        let Source::Csi(csi) = persistent(meta, spec).unwrap().source else { panic!("no driver") };
        (csi.stage_secret, csi.publish_secret, csi.expand_secret)
    };
    let pair = |namespace: &str, name: &str| Some((namespace.to_owned(), name.to_owned()));
    let file = json!({ "azureFile": { "secretName": "mine", "shareName": "s", "secretNamespace": "ns" } });
    assert_eq!(of(json!({}), file), (pair("ns", "mine"), None, None));
    let auth = json!({ "annotations": { "openstorage.io/auth-secret-name": "a", "openstorage.io/auth-secret-namespace": "n" } });
    let portworx = json!({ "portworxVolume": { "volumeID": "p" } });
    assert_eq!(of(auth, portworx.clone()), (pair("n", "a"), pair("n", "a"), pair("n", "a")));
    let half = json!({ "annotations": { "openstorage.io/auth-secret-name": "a" } });
    assert_eq!(of(half, portworx), (None, None, None));
}

#[test]
fn gce_takes_one_writer_or_readers() {
    for (modes, want) in [
        (json!(["ReadWriteMany"]), vec!["ReadWriteOnce"]),
        (json!(["ReadOnlyMany", "ReadWriteOnce"]), vec!["ReadWriteOnce"]),
        (json!(["ReadOnlyMany"]), vec!["ReadOnlyMany"]),
        (json!(["ReadWriteOncePod"]), vec!["ReadWriteOnce"]),
        (json!(null), vec![]),
    ] {
        let spec = json!({ "gcePersistentDisk": { "pdName": "d" }, "accessModes": modes });
        assert_eq!(persistent(json!({}), spec).unwrap().access_modes, want, "{modes}");
    }
}

#[test]
fn what_no_driver_can_have_is_refused() {
    let zones = json!({ "labels": { "topology.kubernetes.io/zone": "europe-west1-b__us-east1-c" } });
    let odd = json!({ "labels": { "failure-domain.beta.kubernetes.io/zone": "a__b" } });
    let gce = json!({ "gcePersistentDisk": { "pdName": "d" } });
    for (meta, spec, why) in [
        (
            json!({}),
            json!({ "awsElasticBlockStore": { "volumeID": "aws://zone/other" } }),
            "Invalid format for AWS volume (aws://zone/other)",
        ),
        (
            json!({}),
            json!({ "azureDisk": { "diskName": "d", "diskURI": "u", "kind": "Shared" } }),
            "kind(Shared) is not supported in csi migration",
        ),
        (
            json!({}),
            json!({ "azureFile": { "secretName": "s", "shareName": "s" } }),
            "could not find a secret namespace in PersistentVolumeSource or ClaimRef",
        ),
        (zones, gce.clone(), "multiple or no regions gotten from zones"),
        (odd, gce, "zone in unexpected format"),
    ] {
        let e = persistent(meta, spec).unwrap_err();
        assert!(e.starts_with("PersistentVolume \"pv1\": ") && e.contains(why), "{e}");
    }
}
