//! The client certificate.

use std::time::Duration;

use actor::testing::settle;
use model::k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ports::api::ApiError;

use super::rig::{HOUR, Rig, START_S, rig, rotating};
use crate::{ClientSource, PemPair, ServingSource};

#[test]
fn a_node_without_certificate_bootstraps_and_then_rotates_with_its_own() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let first = Rig::request(&rig.bootstrap).await;
        let csr: CertificateSigningRequest = rig.bootstrap.read(None, &first).unwrap();
        assert!(first.starts_with("csr-"), "{first}");
        assert_eq!(csr.spec.signer_name, "kubernetes.io/kube-apiserver-client-kubelet");
        assert_eq!(csr.spec.usages.as_deref().unwrap(), ["key encipherment", "digital signature", "client auth"]);
        rig.issue(&rig.bootstrap, &first, START_S, HOUR);
        let view = rig.until("certified", |v| v.client.is_some()).await;
        let pair = view.client.clone().unwrap();
        let facts = cert_rotation::certificate::read(&pair.certificate_pem).unwrap();
        assert_eq!(facts.common_name, "system:node:n1");
        assert_eq!(facts.organizations.iter().collect::<Vec<_>>(), ["system:nodes"]);
        assert!(facts.dns_names.is_empty() && facts.ip_addresses.is_empty());

        let began = tokio::time::Instant::now();
        let second = Rig::request(&rig.api).await;
        let share = began.elapsed().as_secs_f64() / HOUR.as_secs_f64();
        assert!((0.69..0.91).contains(&share), "asked again after {share} of the life");
        let now = START_S + 3000;
        rig.issue(&rig.api, &second, now, HOUR);
        let view = rig.until("renewed", |v| v.client.as_ref().is_some_and(|c| *c != pair)).await;
        assert_ne!(view.client.as_ref().unwrap().key_pem, pair.key_pem);
        assert_eq!((view.error.clone(), view.must_exit.clone()), (None, None));
        assert!(Rig::open(&rig.bootstrap).is_empty());
    });
}

#[test]
fn files_are_laid_out_as_a_kubelet_does() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        settle().await;
        assert_eq!(rig.files(), ["kubelet-client-pending.json"]);
        let mode = |path: &str| rig.dir.mode(path);
        assert_eq!(mode("kubelet-client-pending.json"), 0o600);
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        let view = rig.until("certified", |v| v.client.is_some()).await;
        let files = rig.files();
        assert_eq!(files.len(), 2, "{files:?}");
        assert!(files[0].starts_with("kubelet-client-2026-01-01-00-0"), "{files:?}");
        assert_eq!(files[1], "kubelet-client-current.pem");
        assert_eq!(rig.dir.link_of(&files[1]), rig.dir.path(&files[0]).to_string_lossy());
        assert_eq!(mode(&files[0]), 0o600);
        let pair = view.client.clone().unwrap();
        let text = rig.dir.read(&files[1]);
        assert_eq!(text, format!("{}{}", pair.certificate_pem, pair.key_pem));
    });
}

#[test]
fn a_started_daemon_uses_the_certificate_that_it_finds() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        let before = rig.until("certified", |v| v.client.is_some()).await.client.clone();
        rig.start(rotating(), ServingSource::Off).await;
        let after = rig.until("read", |v| v.client.is_some()).await.client.clone();
        assert_eq!(after, before);
        assert!(Rig::open(&rig.bootstrap).is_empty() && Rig::open(&rig.api).is_empty());
    });
}

#[test]
fn an_open_request_outlives_the_daemon() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        settle().await;
        rig.start(rotating(), ServingSource::Off).await;
        settle().await;
        assert_eq!(rig.bootstrap.requests_of("POST", "certificatesigningrequests").len(), 1);
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        rig.until("certified", |v| v.client.is_some()).await;
    });
}

#[test]
fn a_refused_request_is_made_anew_with_another_key() {
    for kind in ["Denied", "Failed"] {
        rig(async |mut rig| {
            rig.start(rotating(), ServingSource::Off).await;
            let first = Rig::request(&rig.bootstrap).await;
            rig.refuse(&rig.bootstrap, &first, kind);
            let wanted = format!("certificate request {first} is {}: not you", kind.to_lowercase());
            let view = rig.until("refused", |v| v.error.is_some()).await;
            assert_eq!(view.error.as_deref(), Some(wanted.as_str()));
            let began = tokio::time::Instant::now();
            let second = Rig::request(&rig.bootstrap).await;
            assert!((1.9..2.3).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
            let key = |name: &str| rig.bootstrap.read::<CertificateSigningRequest>(None, name).unwrap().spec.request;
            assert_ne!(key(&first), key(&second));
            rig.issue(&rig.bootstrap, &second, START_S, HOUR);
            rig.until("certified", |v| v.client.is_some() && v.error.is_none()).await;
        });
    }
}

#[test]
fn a_deleted_request_is_made_anew() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let first = Rig::request(&rig.bootstrap).await;
        settle().await;
        rig.bootstrap.vanish::<CertificateSigningRequest>(None, &first);
        let view = rig.until("an error", |v| v.error.is_some()).await;
        assert_eq!(view.error, Some(format!("certificate request {first} was deleted")));
        assert_ne!(Rig::request(&rig.bootstrap).await, first);
    });
}

#[test]
fn nobody_is_waited_for_longer_than_a_quarter_of_an_hour() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let first = Rig::request(&rig.bootstrap).await;
        let began = tokio::time::Instant::now();
        let view = rig.until("late", |v| v.error.is_some()).await;
        assert_eq!(began.elapsed().as_secs().div_ceil(10), 90);
        let text = view.error.clone().unwrap();
        assert!(text.contains(&first) && text.ends_with("neither approved nor denied within 900s"), "{text}");
        assert!(view.must_exit.is_none());
    });
}

#[test]
fn failures_are_repeated_after_two_seconds_and_more_with_the_same_key() {
    rig(async |mut rig| {
        let away = ApiError::Unreachable { message: "connection refused".to_owned() };
        rig.bootstrap.fail("POST", "certificatesigningrequests", 7, away);
        let began = tokio::time::Instant::now();
        rig.start(rotating(), ServingSource::Off).await;
        Rig::request(&rig.bootstrap).await;
        let tries = rig.bootstrap.requests_of("POST", "certificatesigningrequests");
        let at: Vec<_> = tries.iter().map(|t| t.at.as_secs_f64()).collect();
        let pauses: Vec<_> = at.windows(2).map(|w| w[1] - w[0]).collect();
        for (pause, wanted) in pauses.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]) {
            assert!((wanted..wanted * 1.1 + 0.1).contains(pause), "{pauses:?}");
        }
        assert_eq!(pauses.len(), 7);
        assert!(began.elapsed() > Duration::from_secs(126));
    });
}

#[test]
fn a_pair_of_the_kubeconfig_is_used_and_replaced_at_once() {
    rig(async |mut rig| {
        let (certificate, key) = crate::signing::self_signed("system:node:n1", START_S).unwrap();
        let imported = Some(PemPair { certificate, key: key.clone() });
        rig.start(ClientSource::Rotate { imported, files: None }, ServingSource::Off).await;
        let view = rig.until("imported", |v| v.client.is_some()).await;
        assert_eq!(view.client.as_ref().unwrap().key_pem, key);
        let name = Rig::request(&rig.api).await;
        rig.issue(&rig.api, &name, START_S, HOUR);
        rig.until("replaced", |v| v.client.as_ref().is_some_and(|c| c.key_pem != key)).await;
        assert!(rig.bootstrap.requests().is_empty());
    });
}

#[test]
fn a_bootstrap_without_rotation_asks_once_under_a_name_that_follows_from_its_key() {
    rig(async |mut rig| {
        rig.start(ClientSource::Once, ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        assert!(name.starts_with("node-csr-") && name.len() == 52, "{name}");
        assert_eq!(rig.files(), ["kubelet-client.key.tmp"]);
        rig.start(ClientSource::Once, ServingSource::Off).await;
        settle().await;
        assert_eq!(rig.bootstrap.read_all::<CertificateSigningRequest>(None).len(), 1);
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        rig.until("certified", |v| v.client.is_some()).await;
        assert!(!rig.files().contains(&"kubelet-client.key.tmp".to_owned()));
        tokio::time::sleep(2 * HOUR).await;
        assert!(rig.api.requests().is_empty() && rig.bootstrap.requests_of("POST", "").len() <= 2);
        assert_eq!(rig.view().must_exit, None);
    });
}

#[test]
fn a_bootstrap_without_rotation_gives_up_after_an_hour() {
    rig(async |mut rig| {
        rig.start(ClientSource::Once, ServingSource::Off).await;
        let view = rig.until("gave up", |v| v.must_exit.is_some()).await;
        assert!(view.must_exit.as_deref().unwrap().contains("within 3600s"), "{view:?}");
    });
}

#[test]
fn the_daemon_should_exit_when_its_certificate_ended_and_the_server_answers() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        rig.until("certified", |v| v.client.is_some()).await;
        let no = ApiError::status(403, "Forbidden", "no");
        rig.api.fail("POST", "certificatesigningrequests", u32::MAX, no.clone());
        rig.bootstrap.fail("POST", "certificatesigningrequests", u32::MAX, no);
        let view = rig.until("asked to exit", |v| v.must_exit.is_some()).await;
        assert_eq!(view.must_exit.as_deref(), Some("the client certificate has expired and the API server answers"));
    });
}

#[test]
fn the_daemon_stays_when_the_server_is_away() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        rig.until("certified", |v| v.client.is_some()).await;
        rig.api.unplug();
        rig.bootstrap.unplug();
        tokio::time::sleep(3 * HOUR).await;
        assert_eq!(rig.view().must_exit, None);
        rig.bootstrap.calm();
        let name = Rig::request(&rig.bootstrap).await;
        rig.issue(&rig.bootstrap, &name, START_S + 3 * 3600, HOUR);
        let wanted = START_S + 3 * 3600;
        rig.until("again", |v| {
            v.client.as_ref().is_some_and(|c| c.not_before.0 > 0 && c.not_after.0 / 1_000_000_000 > wanted)
        })
        .await;
    });
}
