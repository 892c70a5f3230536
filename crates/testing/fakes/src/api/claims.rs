//! Claims and CSI drivers, as the controllers of a cluster leave them.

use serde_json::{Value, json};

use super::FakeApi;

impl FakeApi {
    /// A CSI driver of this specification.
    pub fn put_driver(&self, name: &str, spec: Value) {
        let driver = json!({ "metadata": { "name": name }, "spec": spec });
        self.put_json(&format!("/apis/storage.k8s.io/v1/csidrivers/{name}"), driver);
    }

    /// A claim NAME of namespace `default` with the UID `uid-NAME`, bound to a volume `pv-NAME` of this specification; what the claim
    /// says beside that.
    pub fn put_claim(&self, name: &str, mut volume: Value, mut spec: Value, mut status: Value) {
        let (pv, uid) = (format!("pv-{name}"), format!("uid-{name}"));
        if volume.get("claimRef").is_none() {
            volume["claimRef"] = json!({ "uid": uid });
        }
        let object = json!({ "metadata": { "name": pv }, "spec": volume });
        self.put_json(&format!("/api/v1/persistentvolumes/{pv}"), object);
        spec["volumeName"] = pv.into();
        status["phase"] = "Bound".into();
        let metadata = json!({ "name": name, "namespace": "default", "uid": uid });
        let claim = json!({ "metadata": metadata, "spec": spec, "status": status });
        self.put_json(&format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}"), claim);
    }
}
