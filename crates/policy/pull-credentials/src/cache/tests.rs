//! Who is served from whose answer, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Timestamp;

use super::{AccountKey, PluginCache};
use crate::docker_config::{Auth, AuthMap};
use crate::exchange::{Answer, CacheScope};

const MINUTE: Duration = Duration::from_secs(60);

fn answer(scope: CacheScope, keep: Option<Duration>) -> Answer {
    Answer { scope, cache_duration: keep, auths: AuthMap::from([("r.io".to_owned(), Auth::default())]) }
}

#[test]
fn scopes_table() {
    for (scope, same_image, same_registry, other) in [
        (CacheScope::Image, true, false, false),
        (CacheScope::Registry, true, true, false),
        (CacheScope::Global, true, true, true),
    ] {
        let mut cache = PluginCache::default();
        let (none, now) = (AccountKey::default(), Timestamp::from_secs(100));
        cache.put("r.io/a", none.clone(), &answer(scope, None), MINUTE, now);
        let has = |image: &str| cache.get(image, &none, now).is_some();
        assert_eq!((has("r.io/a"), has("r.io/b"), has("q.io/a")), (same_image, same_registry, other), "{scope:?}");
    }
}

#[test]
fn durations_table() {
    for (name, keep, default, kept_s) in [
        ("the answer says", Some(MINUTE), Duration::ZERO, Some(60)),
        ("the default", None, MINUTE, Some(60)),
        ("explicitly not at all", Some(Duration::ZERO), MINUTE, None),
        ("no default", None, Duration::ZERO, None),
    ] {
        let mut cache = PluginCache::default();
        let none = AccountKey::default();
        cache.put("i", none.clone(), &answer(CacheScope::Image, keep), default, Timestamp::from_secs(100));
        let at = |s: i64| cache.get("i", &none, Timestamp::from_secs(100 + s)).is_some();
        assert_eq!(at(0), kept_s.is_some(), "{name}");
        assert_eq!(kept_s.is_some_and(|s| at(s) && !at(s + 1)), kept_s.is_some(), "{name}");
    }
}

#[test]
fn one_account_is_never_served_from_anothers_answer() {
    let notes = |v: &str| BTreeMap::from([("k".to_owned(), v.to_owned())]);
    let base = AccountKey::new(("ns", "sa", "1"), &notes("v"), None);
    let mut cache = PluginCache::default();
    cache.put("i", base.clone(), &answer(CacheScope::Global, None), MINUTE, Timestamp::ZERO);
    let has = |key: &AccountKey| cache.get("i", key, Timestamp::ZERO).is_some();
    assert!(has(&base));
    for other in [
        AccountKey::default(),
        AccountKey::new(("ns", "sa", "2"), &notes("v"), None),
        AccountKey::new(("ns", "other", "1"), &notes("v"), None),
        AccountKey::new(("other", "sa", "1"), &notes("v"), None),
        AccountKey::new(("ns", "sa", "1"), &notes("w"), None),
        AccountKey::new(("ns", "sa", "1"), &notes("v"), Some("token")),
    ] {
        assert!(!has(&other), "{other:?}");
    }
    assert!(!format!("{:?}", AccountKey::new(("", "", ""), &notes(""), Some("token"))).contains("token"));
}

#[test]
fn what_is_over_is_dropped() {
    let mut cache = PluginCache::default();
    for i in 0..10 {
        let image = format!("i{i}");
        let now = Timestamp::from_secs(i * 100);
        cache.put(&image, AccountKey::default(), &answer(CacheScope::Image, None), MINUTE, now);
    }
    assert_eq!(cache.entries.len(), 1);
}
