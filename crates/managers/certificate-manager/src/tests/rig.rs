//! A manager, its folder, and the two controllers of the control plane that answer requests.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use actor::{ActorRef, Kernel};
use contract::Wiring;
use contract::certificates::CertificateView;
use contract::node::{NodeOrigin, NodeView};
use fakes::{FakeApi, Folder};
use model::core::{Node, NodeAddress, NodeStatus};
use model::k8s_openapi::ByteString;
use model::k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestStatus,
};
use rcgen::{CertificateParams, CertificateSigningRequestParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use crate::{CertificateManager, ClientSource, Config, Deps, ServingSource};

/// Virtual time starts here.
pub(super) const START_S: i64 = 1_767_225_600;
pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) struct Rig {
    /// The certificates, on a disk in memory.
    pub(super) dir: Folder,
    pub(super) api: FakeApi,
    pub(super) bootstrap: FakeApi,
    pub(super) wiring: Wiring,
    pub(super) kernel: Kernel,
    issuer: Issuer<'static, KeyPair>,
    actor: Option<ActorRef<CertificateManager>>,
}

pub(super) fn rig<F, Fut>(f: F)
where
    F: FnOnce(Rig) -> Fut,
    Fut: Future<Output = ()>,
{
    run(1, |kernel| {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "kubernetes");
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        f(Rig {
            dir: Folder::new("/pki"),
            api: FakeApi::new(),
            bootstrap: FakeApi::new(),
            wiring: Wiring::default(),
            kernel,
            issuer: Issuer::new(authority, KeyPair::generate().unwrap()),
            actor: None,
        })
    });
}

pub(super) fn rotating() -> ClientSource {
    ClientSource::Rotate { imported: None, files: None }
}

pub(super) fn condition(kind: &str, message: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        message: (!message.is_empty()).then(|| message.to_owned()),
        ..CertificateSigningRequestCondition::default()
    }
}

pub(super) fn addresses(of: &[(&str, &str)]) -> NodeView {
    let address = |(kind, text): &(&str, &str)| NodeAddress { type_: (*kind).to_owned(), address: (*text).to_owned() };
    let status = NodeStatus { addresses: Some(of.iter().map(address).collect()), ..NodeStatus::default() };
    let node = Node { status: Some(status), ..Node::default() };
    NodeView { node: Some(Arc::new(node)), origin: NodeOrigin::Host, ..NodeView::default() }
}

impl Rig {
    /// Starts a manager; one that ran before is stopped, as the daemon would be.
    pub(super) async fn start(&mut self, client: ClientSource, serving: ServingSource) {
        self.start_with(client, serving, true).await;
    }

    pub(super) async fn start_with(&mut self, client: ClientSource, serving: ServingSource, bootstrap: bool) {
        if let Some(old) = self.actor.take() {
            old.stop();
            old.stopped().await;
            self.wiring.set(CertificateView::default());
        }
        let config = Arc::new(Config { cert_dir: self.dir.path(""), node_name: "n1".to_owned(), client, serving });
        let deps = Deps {
            api: Arc::new(self.api.clone()),
            bootstrap_api: bootstrap.then(|| Arc::new(self.bootstrap.clone()) as Arc<dyn ports::api::ApiServer>),
            fs: self.dir.fs(),
        };
        let make = move |crew| CertificateManager::new(&crew, config.clone(), deps.clone());
        self.actor = Some(fakes::start(&self.kernel, &self.wiring, make));
        settle().await;
    }

    pub(super) fn view(&self) -> Arc<CertificateView> {
        self.wiring.value().get()
    }

    pub(super) fn files(&self) -> Vec<String> {
        self.dir.names("")
    }

    /// Requests that have no answer yet, oldest first.
    pub(super) fn open(api: &FakeApi) -> Vec<CertificateSigningRequest> {
        let mut all: Vec<CertificateSigningRequest> = api.read_all(None);
        all.retain(|csr| csr.status.as_ref().is_none_or(|s| s.conditions.is_none()));
        all
    }

    /// Waits for a request and returns its name.
    pub(super) async fn request(api: &FakeApi) -> String {
        api.until(|api| !Self::open(api).is_empty()).await;
        Self::open(api)[0].metadata.name.clone().unwrap()
    }

    pub(super) fn sign(&self, csr: &CertificateSigningRequest, start_s: i64, life: Duration) -> String {
        let text = String::from_utf8(csr.spec.request.0.clone()).unwrap();
        let mut request = CertificateSigningRequestParams::from_pem(&text).expect("a good request");
        let start = date_time_ymd(1970, 1, 1) + Duration::from_secs(start_s as u64);
        request.params.not_before = start;
        request.params.not_after = start + life;
        request.signed_by(&self.issuer).unwrap().pem()
    }

    /// Approves and signs a request with a life of an hour from the start of virtual time.
    pub(super) fn issue(&self, api: &FakeApi, name: &str, start_s: i64, life: Duration) {
        api.change(None, name, |csr: &mut CertificateSigningRequest| {
            let pem = self.sign(csr, start_s, life);
            csr.status = Some(CertificateSigningRequestStatus {
                certificate: Some(ByteString(pem.into_bytes())),
                conditions: Some(vec![condition("Approved", "")]),
            });
        });
    }

    pub(super) fn refuse(&self, api: &FakeApi, name: &str, kind: &str) {
        api.change(None, name, |csr: &mut CertificateSigningRequest| {
            let conditions = Some(vec![condition(kind, "not you")]);
            csr.status = Some(CertificateSigningRequestStatus { conditions, certificate: None });
        });
    }

    /// Waits until the view is as wanted.
    pub(super) async fn until(&self, what: &str, wanted: impl Fn(&CertificateView) -> bool) -> Arc<CertificateView> {
        let mut rx = self.wiring.value::<CertificateView>().subscribe();
        let wait = rx.wait_for(|v| wanted(v));
        let found = tokio::time::timeout(Duration::from_secs(30 * 24 * 3600), wait).await;
        found.unwrap_or_else(|_| panic!("never {what}: {:?}", self.view())).unwrap().clone()
    }

    pub(super) fn kill(&self) {
        assert!(self.kernel.directory().kill("certificate-manager"));
    }
}
