//! A second type of plugins, by a handler that somebody else adds.

use std::sync::{Arc, Mutex, PoisonError};

use actor::testing::{run, until};
use csi_api::registration::PluginInfo;
use fakes::FakeDriver;
use ports::plugin::{Handling, PluginHandler};

use super::rig::{Rig, secs};

/// Notes what it is asked.
#[derive(Debug, Default)]
struct Noted {
    asked: Mutex<Vec<String>>,
    /// What the next calls of register and deregister say.
    fails: Mutex<Vec<&'static str>>,
}

impl Noted {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, what: String) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn answer(&self) -> Handling {
        let failed = self.fails.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Box::pin(async move { failed.map_or(Ok(()), |why| Err(why.to_owned())) })
    }
}

impl PluginHandler for Noted {
    fn validate(&self, plugin: &PluginInfo, beside: &[&[String]]) -> Result<(), String> {
        self.note(format!("validate {} beside {beside:?}", plugin.name));
        let is_newer = beside.iter().all(|versions| *versions < plugin.supported_versions.as_slice());
        if plugin.supported_versions == ["v0"] || !is_newer { Err("it is too old".to_owned()) } else { Ok(()) }
    }

    fn register(&self, plugin: PluginInfo) -> Handling {
        self.note(format!("register {} {} {:?}", plugin.name, plugin.endpoint, plugin.supported_versions));
        self.answer()
    }

    fn deregister(&self, name: &str) -> Handling {
        self.note(format!("deregister {name}"));
        self.answer()
    }
}

fn claims(name: &str, version: &str) -> FakeDriver {
    let mut plugin = FakeDriver::driver(name);
    plugin.info.r#type = "DRAPlugin".to_owned();
    plugin.info.supported_versions = vec![version.to_owned()];
    plugin
}

fn with_handler(test: impl AsyncFnOnce(Rig, Arc<Noted>)) {
    run(1, async |kernel| {
        let (mut rig, handler) = (Rig::new(&kernel), Arc::new(Noted::default()));
        rig.handlers.insert("DRAPlugin".to_owned(), handler.clone());
        rig.start_manager(true);
        test(rig, handler).await;
    });
}

#[test]
fn a_plugin_goes_its_way_by_the_handler_of_its_type() {
    with_handler(async |rig, handler| {
        rig.comes("gpu.sock", claims("gpu.example", "v1"));
        until("it is told", || rig.told("gpu.sock") == [Ok(())]).await;
        let at = rig.path("gpu.sock").display().to_string();
        let asked = ["validate gpu.example beside []".to_owned(), format!("register gpu.example {at} [\"v1\"]")];
        assert_eq!(handler.asked(), asked);
        let row = rig.socket("gpu.sock").unwrap();
        assert!(row.registered_at.is_some() && row.error.is_none() && row.kind == "DRAPlugin");
        assert_eq!((rig.driver("gpu.example"), rig.csi_node()), (None, Some(Vec::new())), "it is no CSI driver");
        rig.comes("csi.sock", FakeDriver::driver("gpu.example"));
        until("a driver of that name is another plugin", || rig.told("csi.sock") == [Ok(())]).await;
        assert_eq!(handler.asked(), [""; 0]);
        rig.kernel.faults().enable();
        rig.kernel.faults().add_text("plugin-manager: kill@=look#1").unwrap();
        secs(30).await;
        assert_eq!((rig.kernel.faults().log().len(), handler.asked()), (1, vec![]), "a rebuilt manager knows it");
        rig.goes("gpu.sock");
        until("its row is gone", || rig.socket("gpu.sock").is_none()).await;
        assert_eq!(handler.asked(), ["deregister gpu.example"]);
        assert!(rig.driver("gpu.example").is_some() && rig.csi_node() == Some(vec!["gpu.example".to_owned()]));
    });
}

#[test]
fn what_a_handler_refuses_is_told_and_tried_again() {
    with_handler(async |rig, handler| {
        rig.comes("old.sock", claims("old.example", "v0"));
        until("it is told", || !rig.told("old.sock").is_empty()).await;
        let words = "RegisterPlugin error -- plugin validation failed with err: it is too old";
        assert_eq!(rig.told("old.sock")[0], Err(words.to_owned()));
        rig.goes("old.sock");
        until("its row is gone", || rig.socket("old.sock").is_none()).await;
        assert!(handler.asked().iter().all(|line| line.starts_with("validate")), "what never was registered");
        handler.fails.lock().unwrap().push("no room");
        rig.comes("gpu.sock", claims("gpu.example", "v1"));
        until("it is registered in the end", || rig.told("gpu.sock").last() == Some(&Ok(()))).await;
        let words = "RegisterPlugin error -- plugin registration failed with err: no room";
        assert_eq!(rig.told("gpu.sock"), [Err(words.to_owned()), Ok(())]);
        handler.asked();
        handler.fails.lock().unwrap().push("not now");
        rig.goes("gpu.sock");
        until("it is forgotten in the end", || rig.socket("gpu.sock").is_none()).await;
        assert_eq!(handler.asked(), ["deregister gpu.example"; 2]);
    });
}

#[test]
fn a_newer_socket_takes_the_place_of_another_one_of_its_type_and_name() {
    with_handler(async |rig, handler| {
        rig.comes("a1.sock", claims("gpu.example", "v1"));
        until("the first is told", || rig.told("a1.sock") == [Ok(())]).await;
        handler.asked();
        rig.comes("a2.sock", claims("gpu.example", "v2"));
        until("the second is told", || rig.told("a2.sock") == [Ok(())]).await;
        assert_eq!(handler.asked()[0], "validate gpu.example beside [[\"v1\"]]");
        assert!(rig.socket("a1.sock").unwrap().error.as_deref().unwrap().ends_with("gpu.example took its place"));
        rig.folder.remove("a1.sock");
        rig.plugins.end(&rig.path("a1.sock"));
        rig.watch.gone("a1.sock");
        until("the first is gone", || rig.socket("a1.sock").is_none()).await;
        assert!(!handler.asked().contains(&"deregister gpu.example".to_owned()), "the second is registered");
    });
}
