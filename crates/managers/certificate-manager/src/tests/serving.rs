//! The serving certificate.

use std::time::Duration;

use actor::testing::settle;
use model::k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::rig::{HOUR, Rig, START_S, addresses, rig, rotating};
use crate::{ClientSource, ServingSource};

fn requested() -> ServingSource {
    ServingSource::Rotate { files: None }
}

#[test]
fn a_serving_certificate_is_asked_for_once_the_node_has_an_address() {
    rig(async |mut rig| {
        rig.wiring.set(addresses(&[("Hostname", "n1")]));
        rig.start(ClientSource::Off, requested()).await;
        tokio::time::sleep(HOUR).await;
        assert!(rig.api.requests().is_empty());
        rig.wiring.set(addresses(&[("Hostname", "n1"), ("InternalIP", "10.0.0.1")]));
        let name = Rig::request(&rig.api).await;
        let csr: CertificateSigningRequest = rig.api.read(None, &name).unwrap();
        assert_eq!(csr.spec.signer_name, "kubernetes.io/kubelet-serving");
        assert_eq!(csr.spec.usages.as_deref().unwrap(), ["key encipherment", "digital signature", "server auth"]);
        rig.issue(&rig.api, &name, START_S + 3600, HOUR);
        let view = rig.until("certified", |v| v.serving.is_some()).await;
        let facts = cert_rotation::certificate::read(&view.serving.as_ref().unwrap().certificate_pem).unwrap();
        assert_eq!(facts.dns_names.iter().collect::<Vec<_>>(), ["n1"]);
        assert_eq!(facts.ip_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.1"]);
        assert!(rig.files().contains(&"kubelet-server-current.pem".to_owned()));
        assert!(view.client.is_none());
    });
}

#[test]
fn another_address_gives_up_the_open_request_and_makes_a_new_one() {
    rig(async |mut rig| {
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.1")]));
        rig.start(ClientSource::Off, requested()).await;
        let first = Rig::request(&rig.api).await;
        settle().await;
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.2")]));
        rig.api.until(|api| Rig::open(api).len() == 2).await;
        // The first is answered too late.
        rig.issue(&rig.api, &first, START_S, HOUR);
        let second = Rig::request(&rig.api).await;
        assert_ne!(first, second);
        rig.issue(&rig.api, &second, START_S, HOUR);
        let view = rig.until("certified", |v| v.serving.is_some()).await;
        let facts = cert_rotation::certificate::read(&view.serving.as_ref().unwrap().certificate_pem).unwrap();
        assert_eq!(facts.ip_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.2"]);
    });
}

#[test]
fn another_address_replaces_a_good_certificate() {
    rig(async |mut rig| {
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.1")]));
        rig.start(ClientSource::Off, requested()).await;
        let name = Rig::request(&rig.api).await;
        rig.issue(&rig.api, &name, START_S, HOUR);
        let first = rig.until("certified", |v| v.serving.is_some()).await.serving.clone();
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.1"), ("ExternalIP", "192.0.2.1")]));
        let name = Rig::request(&rig.api).await;
        assert_eq!(rig.view().serving, first, "the old one serves until then");
        rig.issue(&rig.api, &name, START_S, HOUR);
        rig.until("replaced", |v| v.serving.is_some() && v.serving != first).await;
    });
}

#[test]
fn a_node_that_bootstraps_asks_for_its_serving_certificate_afterwards() {
    rig(async |mut rig| {
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.1")]));
        rig.start(rotating(), requested()).await;
        let client = Rig::request(&rig.bootstrap).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(rig.api.requests().is_empty());
        rig.issue(&rig.bootstrap, &client, START_S, HOUR);
        let serving = Rig::request(&rig.api).await;
        rig.issue(&rig.api, &serving, START_S, HOUR);
        rig.until("both", |v| v.client.is_some() && v.serving.is_some()).await;
    });
}

#[test]
fn a_signer_that_drops_names_is_not_asked_in_a_circle() {
    rig(async |mut rig| {
        rig.wiring.set(addresses(&[("InternalIP", "10.0.0.1")]));
        rig.start(ClientSource::Off, requested()).await;
        let name = Rig::request(&rig.api).await;
        rig.api.change(None, &name, |csr: &mut CertificateSigningRequest| {
            // Signs for another request's names: those of nobody.
            let text = String::from_utf8(csr.spec.request.0.clone()).unwrap();
            let mut request = rcgen::CertificateSigningRequestParams::from_pem(&text).unwrap();
            request.params.subject_alt_names.clear();
            request.params.not_after = rcgen::date_time_ymd(2030, 1, 1);
            let issuer = rcgen::Issuer::new(rcgen::CertificateParams::default(), rcgen::KeyPair::generate().unwrap());
            csr.status = Some(model::k8s_openapi::api::certificates::v1::CertificateSigningRequestStatus {
                certificate: Some(model::k8s_openapi::ByteString(
                    request.signed_by(&issuer).unwrap().pem().into_bytes(),
                )),
                conditions: Some(vec![super::rig::condition("Approved", "")]),
            });
        });
        rig.until("certified", |v| v.serving.is_some()).await;
        let began = tokio::time::Instant::now();
        Rig::request(&rig.api).await;
        assert!(began.elapsed() > Duration::from_millis(1900), "{:?}", began.elapsed());
    });
}

#[test]
fn without_other_sources_the_node_signs_for_itself_and_keeps_that() {
    rig(async |mut rig| {
        let own = || ServingSource::SelfSigned { hostname: "machine".to_owned() };
        rig.start(ClientSource::Off, own()).await;
        let first = rig.until("made", |v| v.serving.is_some()).await.serving.clone().unwrap();
        assert_eq!(rig.files(), ["kubelet.crt", "kubelet.key"]);
        let mode = |path: &str| rig.dir.mode(path);
        assert_eq!((mode("kubelet.crt"), mode("kubelet.key")), (0o644, 0o600));
        let facts = cert_rotation::certificate::read(&first.certificate_pem).unwrap();
        assert_eq!(facts.common_name, format!("machine@{START_S}"));
        assert_eq!(facts.dns_names.iter().collect::<Vec<_>>(), ["machine"]);
        assert_eq!(facts.not_after_s - facts.not_before_s, 365 * 24 * 3600);
        rig.start(ClientSource::Off, own()).await;
        let again = rig.until("read", |v| v.serving.is_some()).await.serving.clone().unwrap();
        assert_eq!(again, first);
        rig.dir.remove("kubelet.key");
        rig.start(ClientSource::Off, own()).await;
        let other = rig.until("made", |v| v.serving.is_some()).await.serving.clone().unwrap();
        assert_ne!(other, first);
    });
}

#[test]
fn configured_files_are_read_again_and_damaged_ones_do_no_harm() {
    rig(async |mut rig| {
        let (cert, key) = (rig.dir.path("a.crt"), rig.dir.path("a.key"));
        let dir = rig.dir.clone();
        let write = |name: &str| {
            let (chain, secret) = crate::signing::self_signed(name, START_S).unwrap();
            dir.write(&cert, &chain);
            dir.write(&key, &secret);
            secret
        };
        let first = write("one");
        let source = ServingSource::Files { certificate: cert.clone(), key: key.clone() };
        rig.start(ClientSource::Off, source).await;
        rig.until("read", |v| v.serving.as_ref().is_some_and(|s| s.key_pem == first)).await;
        dir.write(&cert, "nothing");
        let view = rig.until("damaged", |v| v.error.is_some()).await;
        assert_eq!(view.serving.as_ref().unwrap().key_pem, first);
        let second = write("two");
        rig.until("read again", |v| v.error.is_none() && v.serving.as_ref().is_some_and(|s| s.key_pem == second)).await;
        dir.write(&key, &first);
        let view = rig.until("mixed", |v| v.error.is_some()).await;
        assert!(view.error.as_deref().unwrap().contains("the key does not belong to the certificate"), "{view:?}");
    });
}
