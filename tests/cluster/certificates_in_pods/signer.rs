//! A signer of the test: whom it trusts, what it was asked, what it issues.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};
use testbed::{ClusterNode, Watch};

const GROUP: &str = "/apis/certificates.k8s.io/v1beta1";
/// The server takes no certificate that began more than five minutes ago, none that is renewed in its first ten minutes, and
/// none for less than an hour: this one is to be renewed as soon as any.
const BACKDATED: Duration = Duration::from_secs(5 * 60 - 10);
const RENEWED_AFTER: Duration = Duration::from_secs(10 * 60);
const LIFE: Duration = Duration::from_secs(3600);

/// An authority and its key.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str, above: Option<&Authority>) -> Authority {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let made = match above {
        Some(above) => params.signed_by(&key, &above.issuer),
        None => params.self_signed(&key),
    };
    Authority { pem: made.expect("a certificate").pem(), issuer: Issuer::new(params, key) }
}

/// A new root that signed nothing, PEM.
pub(super) fn another_root() -> String {
    authority("another root", None).pem
}

pub(super) struct Signer {
    root: Authority,
    between: Authority,
    requests: Watch,
    served: BTreeSet<String>,
}

impl Signer {
    /// The name that pods give.
    pub(super) const NAME: &str = "bed.example/pods";
    /// The trust bundle with its root.
    pub(super) const BUNDLE: &str = "bed.example:pods:roots";

    /// Tells the cluster whom to trust, and waits for requests.
    pub(super) fn start(node: &ClusterNode) -> Self {
        let root = authority("root", None);
        let between = authority("between", Some(&root));
        let bundle = json!({"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle",
            "metadata": {"name": Self::BUNDLE, "labels": {"for": "pods"}},
            "spec": {"signerName": Self::NAME, "trustBundle": root.pem}});
        node.cluster.admin().create(&format!("{GROUP}/clustertrustbundles"), &bundle).expect("a trust bundle");
        let requests = node.cluster.admin().watch(&format!("{GROUP}/podcertificaterequests")).expect("a watch");
        Signer { root, between, requests, served: BTreeSet::new() }
    }

    /// The certificate that all others come from, PEM.
    pub(super) fn root(&self) -> &str {
        &self.root.pem
    }

    /// Lets the cluster trust these roots.
    pub(super) fn trust(&self, node: &ClusterNode, roots: &str) {
        let path = format!("{GROUP}/clustertrustbundles/{}", Self::BUNDLE);
        let mut bundle = node.cluster.admin().get(&path).expect("the trust bundle");
        bundle["spec"]["trustBundle"] = json!(roots);
        node.cluster.admin().replace(&path, &bundle).expect("other roots");
    }

    /// Waits until there are so many requests that nothing was issued to; answers them.
    pub(super) fn waiting(&self, node: &ClusterNode, count: usize, limit: Duration) -> Vec<Value> {
        let waiting = || -> Vec<Value> {
            let is_new = |o: &Value| !self.served.contains(o["metadata"]["name"].as_str().unwrap_or_default());
            self.requests.look(|seen| {
                seen.iter().filter(|s| s.kind == "ADDED" && is_new(&s.object)).map(|s| s.object.clone()).collect()
            })
        };
        testbed::wait_until(&format!("{count} requests for certificates"), limit, || match waiting() {
            all if all.len() >= count => Ok(all),
            some => Err(format!("{} of them, the watch has ended: {}", some.len(), self.requests.ended())),
        })
        .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
    }

    /// As [`Signer::waiting`], and issues to all of them.
    pub(super) fn issue(&mut self, node: &ClusterNode, count: usize, limit: Duration) -> Vec<Value> {
        let requests = self.waiting(node, count, limit);
        for request in &requests {
            self.served.insert(request["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            self.sign(node, request);
        }
        requests
    }

    /// Looks at the proof that the node has the key, and issues.
    fn sign(&self, node: &ClusterNode, request: &Value) {
        let (name, spec) = (request["metadata"]["name"].as_str().expect("a name"), &request["spec"]);
        let text = spec["stubPKCS10Request"].as_str().expect("a PKCS#10 request");
        let pem = format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n");
        let mut proven = CertificateSigningRequestParams::from_pem(&pem).expect("signed with the key that it is for");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let begins = Duration::from_secs(now) - BACKDATED;
        let pod = spec["podName"].as_str().expect("a pod");
        proven.params.distinguished_name.push(DnType::CommonName, pod);
        proven.params.not_before = (UNIX_EPOCH + begins).into();
        proven.params.not_after = (UNIX_EPOCH + begins + LIFE).into();
        let leaf = proven.signed_by(&self.between.issuer).expect("a certificate").pem();
        let condition = json!({"type": "Issued", "status": "True", "reason": "Signed", "message": "by the test",
            "lastTransitionTime": time(Duration::from_secs(now))});
        let mut signed = request.clone();
        signed["status"] = json!({"conditions": [condition], "certificateChain": format!("{leaf}{}", self.between.pem),
            "notBefore": time(begins), "beginRefreshAt": time(begins + RENEWED_AFTER), "notAfter": time(begins + LIFE)});
        let namespace = request["metadata"]["namespace"].as_str().expect("a namespace");
        let path = format!("{GROUP}/namespaces/{namespace}/podcertificaterequests/{name}/status");
        node.cluster.admin().replace(&path, &signed).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn time(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).expect("this century");
    jiff::Timestamp::from_second(seconds).expect("this century").to_string()
}
