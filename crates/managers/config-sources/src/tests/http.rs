//! The source of a URL on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use actor::{Action, Kernel, Rule, When, testing};
use contract::Wiring;
use contract::board::ValueReader;
use contract::config_sources::http::UrlManifests;
use contract::config_sources::{ManifestState, Source};
use fakes::FakeWeb;
use model::core::Pod;
use model::pod;

use super::rig::{Sets, manifest};
use crate::http::{Config, Deps, HttpSource};

const URL: &str = "http://x/pods";

struct Rig {
    web: Arc<FakeWeb>,
    sets: Sets,
    view: ValueReader<UrlManifests>,
}

impl Rig {
    /// The URL does not answer yet.
    fn new(kernel: &Kernel) -> Rig {
        let (wiring, web) = (Wiring::default(), Arc::<FakeWeb>::default());
        web.hang(URL);
        let headers = vec![("Metadata-Flavor".into(), "Google".into())];
        let (node_name, period) = ("N1".into(), Duration::from_secs(20));
        let config = Arc::new(Config { node_name, url: URL.into(), headers, period });
        let deps = Deps { fetch: web.clone() };
        fakes::start(kernel, &wiring, move |crew| HttpSource::new(crew, config.clone(), deps.clone()));
        Rig { web, sets: Sets::on(&wiring, Source::Http), view: wiring.value() }
    }

    async fn next(&self) {
        tokio::time::sleep(Duration::from_secs(20)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    fn set(&self) -> Option<Vec<String>> {
        let show = |p: &Arc<Pod>| pod::namespaced_name(p);
        self.sets.last().map(|s| s.iter().map(show).collect())
    }
}

#[test]
fn bodies() {
    let list = r#"{"apiVersion":"v1","kind":"PodList","items":[
        {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}},
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"ns"},"spec":{"containers":[{"name":"c","image":"i"}]}}]}"#;
    let yaml =
        "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  spec: {containers: [{name: c, image: i}]}\n";
    let one_bad = list.replace(r#""name":"b""#, r#""name":"B_""#);
    let before: Vec<String> = vec!["default/old-n1".into()];
    let both: Vec<String> = vec!["default/a-n1".into(), "ns/b-n1".into()];
    let rows = [
        ("one pod", 200, manifest("a", "i"), vec!["default/a-n1".into()], ""),
        ("a list", 200, list.to_owned(), both, ""),
        ("a list in YAML", 200, yaml.to_owned(), vec!["default/a-n1".into()], ""),
        ("an empty list", 200, r#"{"apiVersion":"v1","kind":"PodList","items":[]}"#.to_owned(), vec![], ""),
        ("nothing", 200, String::new(), vec![], "answered with nothing: no pods"),
        ("not found", 404, manifest("a", "i"), before.clone(), "answered with status code 404"),
        ("garbage", 200, "<html>".to_owned(), before.clone(), "-"),
        ("one bad of a list", 200, one_bad, before, "items[1]: "),
    ];
    for (name, code, body, set, error) in rows {
        testing::run(1, |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.web.put(URL, &manifest("old", "i"));
            rig.next().await;
            rig.web.answer(URL, code, &body);
            rig.next().await;
            assert_eq!(rig.set(), Some(set), "{name}");
            let view = rig.view.get();
            match (error, view.error.as_deref()) {
                ("", None) => {}
                ("-", Some(_)) => {}
                (wanted, Some(told)) if !wanted.is_empty() => assert!(told.starts_with(wanted), "{name}: {told}"),
                (_, told) => panic!("{name}: {told:?}"),
            }
            assert!(view.delivered, "{name}");
        });
    }
}

#[test]
fn nothing_is_given_before_the_first_answer() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.next().await;
        rig.next().await;
        assert_eq!((rig.set(), rig.view.get().delivered), (None, false));
        assert_eq!(rig.view.get().error.as_deref(), Some("no answer within 10s"));
        let headers = vec![("Metadata-Flavor".to_owned(), "Google".to_owned())];
        assert_eq!(rig.web.asked()[0], (URL.to_owned(), headers));
        rig.web.put(URL, &manifest("a", "i"));
        rig.next().await;
        assert_eq!(rig.set().map(|s| s.len()), Some(1));
        assert_eq!(rig.view.get().error, None);
        let accepted = ManifestState::Accepted { pod: "default/a-n1".into() };
        assert_eq!(rig.view.get().manifests.get(URL), Some(&accepted));
    });
}

#[test]
fn the_same_text_is_the_same_pod_and_an_edit_is_another() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.web.put(URL, &manifest("a", "i:1"));
        rig.next().await;
        let uid = rig.sets.uid();
        rig.next().await;
        assert_eq!(rig.sets.uid(), uid);
        let no_exist_toleration = |p: &Pod| p.spec.as_ref().unwrap().tolerations.is_none();
        assert!(no_exist_toleration(&rig.sets.all()[0][0]), "that is for files alone");
        rig.web.put(URL, &manifest("a", "i:2"));
        rig.next().await;
        assert_ne!(rig.sets.uid(), uid);
    });
}

#[test]
fn a_crash_at_any_point_heals() {
    for point in ["started", "fetch", "answer", "hand-over"] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            testing::run(1, |kernel| async move {
                let (actor, at) = ("http-source".to_owned(), point.to_owned());
                kernel.faults().add(Rule { actor, point: at, when: When::Nth(1), action: action.clone() });
                let rig = Rig::new(&kernel);
                rig.web.put(URL, &manifest("a", "i"));
                rig.next().await;
                assert_eq!(kernel.faults().log().len(), 1, "{point} {action:?}");
                assert_eq!(rig.set().map(|s| s.len()), Some(1), "{point} {action:?}");
            });
        }
    }
}
