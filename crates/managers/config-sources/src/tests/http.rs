//! The source of a URL on a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{Action, Actor, Ctx, Handler, Kernel, Rule, Spec, When, supervised, testing};
use async_trait::async_trait;
use contract::Wiring;
use contract::board::ValueReader;
use contract::config_sources::http::UrlManifests;
use contract::config_sources::{ManifestState, Source};
use contract::pod_manager::SetPods;
use model::core::Pod;
use model::pod;

use super::rig::manifest;
use ports::fetch::{Fetch, Fetched};

use crate::http::{Config, Deps, HttpSource};

type Sets = Arc<Mutex<Vec<Vec<Arc<Pod>>>>>;

struct Taker(Sets);

impl Actor for Taker {
    type Context = Ctx<Self>;
}
supervised!(Taker);

impl Handler<SetPods> for Taker {
    type Result = ();
    fn handle(&mut self, set: SetPods, _: &mut Ctx<Self>) {
        assert_eq!(set.source, Source::Http);
        self.0.lock().unwrap().push(set.pods);
    }
}

/// What the URL says; `None`: it never answers.
#[derive(Default)]
struct Page(Mutex<Option<Result<Fetched, String>>>);

impl Page {
    fn says(&self, code: u16, body: impl Into<String>) {
        *self.0.lock().unwrap() = Some(Ok(Fetched { code, body: body.into().into() }));
    }
}

#[async_trait]
impl Fetch for Page {
    async fn get(&self, url: &str, headers: &[(String, String)], _: usize) -> Result<Fetched, String> {
        assert_eq!((url, headers.len()), ("http://x/pods", 1));
        let said = self.0.lock().unwrap().clone();
        match said {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

struct Rig {
    page: Arc<Page>,
    sets: Sets,
    view: ValueReader<UrlManifests>,
}

impl Rig {
    fn new(kernel: &Kernel) -> Rig {
        let (sets, wiring, page) = (Sets::default(), Wiring::default(), Arc::<Page>::default());
        let seen = sets.clone();
        let taker = kernel.spawn(Spec::new("taker"), move |_| Taker(seen.clone()));
        wiring.inlet::<SetPods>().connect(&taker);
        let config = Arc::new(Config {
            node_name: "N1".into(),
            url: "http://x/pods".into(),
            headers: vec![("Metadata-Flavor".into(), "Google".into())],
            period: Duration::from_secs(20),
        });
        let (deps, crew) = (Deps { fetch: page.clone() }, wiring.crew());
        kernel.spawn(Spec::new("http-source"), move |_| HttpSource::new(crew.succeed(), config.clone(), deps.clone()));
        Rig { page, sets, view: wiring.value() }
    }

    async fn next(&self) {
        tokio::time::sleep(Duration::from_secs(20)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    fn set(&self) -> Option<Vec<String>> {
        let show = |p: &Arc<Pod>| format!("{}/{}", pod::namespace(p), pod::name(p));
        self.sets.lock().unwrap().last().map(|s| s.iter().map(show).collect())
    }

    fn uid(&self) -> String {
        self.sets.lock().unwrap().last().unwrap()[0].metadata.uid.clone().unwrap()
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
            rig.page.says(200, manifest("old", "i"));
            rig.next().await;
            rig.page.says(code, body);
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
        rig.page.says(200, manifest("a", "i"));
        rig.next().await;
        assert_eq!(rig.set().map(|s| s.len()), Some(1));
        assert_eq!(rig.view.get().error, None);
        let accepted = ManifestState::Accepted { pod: "default/a-n1".into() };
        assert_eq!(rig.view.get().manifests.get("http://x/pods"), Some(&accepted));
    });
}

#[test]
fn the_same_text_is_the_same_pod_and_an_edit_is_another() {
    testing::run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.page.says(200, manifest("a", "i:1"));
        rig.next().await;
        let uid = rig.uid();
        rig.next().await;
        assert_eq!(rig.uid(), uid);
        let no_exist_toleration = |p: &Pod| p.spec.as_ref().unwrap().tolerations.is_none();
        assert!(no_exist_toleration(&rig.sets.lock().unwrap()[0][0]), "that is for files alone");
        rig.page.says(200, manifest("a", "i:2"));
        rig.next().await;
        assert_ne!(rig.uid(), uid);
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
                rig.page.says(200, manifest("a", "i"));
                rig.next().await;
                assert_eq!(kernel.faults().log().len(), 1, "{point} {action:?}");
                assert_eq!(rig.set().map(|s| s.len()), Some(1), "{point} {action:?}");
            });
        }
    }
}
