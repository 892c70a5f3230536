//! What a request path names, and which objects a selector takes.

use serde_json::Value;

/// A collection, an object or a sub-resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `v1`, `coordination.k8s.io/v1`.
    pub group_version: String,
    /// `pods`.
    pub resource: String,
    /// Empty: cluster-wide kind, or all namespaces.
    pub namespace: String,
    /// Name of one object.
    pub name: Option<String>,
    /// `status`, `token`, `approval`.
    pub sub: Option<String>,
}

impl Target {
    /// Takes a path apart; `None` when it is not one of the API's.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts = path.split('/').filter(|p| !p.is_empty()).map(str::to_owned);
        let group_version = match parts.next()?.as_str() {
            "api" => parts.next()?,
            "apis" => format!("{}/{}", parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut rest: Vec<String> = parts.collect();
        let mut namespace = String::new();
        if rest.len() > 2 && rest[0] == "namespaces" && !matches!(rest[2].as_str(), "status" | "finalize") {
            namespace = rest.remove(1);
            rest.remove(0);
        }
        let mut rest = rest.into_iter();
        Some(Self { group_version, resource: rest.next()?, namespace, name: rest.next(), sub: rest.next() })
    }

    /// `pods`, `leases.coordination.k8s.io`: how servers name a resource in messages.
    #[must_use]
    pub fn qualified(&self) -> String {
        match self.group_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.resource),
            None => self.resource.clone(),
        }
    }

    /// Kind of the objects of this resource.
    #[must_use]
    pub fn kind(&self) -> String {
        let known = match self.resource.as_str() {
            "clustertrustbundles" => "ClusterTrustBundle",
            "configmaps" => "ConfigMap",
            "csidrivers" => "CSIDriver",
            "csinodes" => "CSINode",
            "certificatesigningrequests" => "CertificateSigningRequest",
            "persistentvolumeclaims" => "PersistentVolumeClaim",
            "persistentvolumes" => "PersistentVolume",
            "podcertificaterequests" => "PodCertificateRequest",
            "runtimeclasses" => "RuntimeClass",
            "serviceaccounts" => "ServiceAccount",
            "tokenreviews" => "TokenReview",
            "subjectaccessreviews" => "SubjectAccessReview",
            "volumeattachments" => "VolumeAttachment",
            _ => "",
        };
        if !known.is_empty() {
            return known.to_owned();
        }
        let mut letters = self.resource.trim_end_matches('s').chars();
        letters.next().map(|c| c.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
    }
}

/// A field selector: `metadata.name=x,spec.clusterIP!=None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(String, bool, String)>);

impl FieldSelector {
    /// Takes a selector apart; an empty one takes everything.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let terms = text.split(',').filter(|t| !t.is_empty()).map(|term| {
            let (key, wanted, value) = match (term.split_once("!="), term.split_once('=')) {
                (Some((key, value)), _) => (key, false, value),
                (None, Some((key, value))) => (key, true, value.trim_start_matches('=')),
                (None, None) => (term, true, ""),
            };
            (key.to_owned(), wanted, value.to_owned())
        });
        Self(terms.collect())
    }

    /// Whether an object is taken. A field that is not there counts as empty.
    #[must_use]
    pub fn takes(&self, object: &Value) -> bool {
        self.0.iter().all(|(key, wanted, value)| {
            let field = key.split('.').try_fold(object, |at, step| at.get(step));
            let text = match field {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(s)) => s.clone(),
                Some(other) => other.to_string(),
            };
            (text == *value) == *wanted
        })
    }
}
