//! Volumes that hold objects of the API, and follow them.

use std::path::PathBuf;
use std::sync::Arc;

use contract::VolumeManager;
use model::core::Pod;
use serde_json::{Value, json};

use super::bed::{Bed, SOON, came, case, pass};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<VolumeManager>> {
    [made(), followed()].into_iter().flatten().collect()
}

fn made() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "config-map",
            "node-and-resources 6.9",
            "each key of a configMap is a file, and containers may only read them",
            config_map,
        )
        .core(),
        case("items", "node-and-resources 6.9", "items choose keys, paths and modes", items).core(),
        case(
            "default-mode",
            "node-and-resources 6.9",
            "files have defaultMode where their item has none",
            default_mode,
        ),
        case(
            "missing-key",
            "node-and-resources 6.9",
            "an item whose key is not there is told as FailedMount, and the pod waits",
            missing_key,
        ),
        case(
            "optional-key",
            "node-and-resources 6.9",
            "an optional configMap may lack a key, or be missing",
            optional_key,
        ),
        case(
            "missing-object",
            "node-and-resources 6.9",
            "a pod waits for a configMap that is not there, is told so, and goes on when it comes",
            missing_object,
        )
        .core(),
        case(
            "wait-ends",
            "node-and-resources 6.2",
            "within two minutes the wait ends, with what is missing",
            wait_ends,
        )
        .inside(),
        case("secret", "node-and-resources 6.9", "a secret is files in memory", secret).inside(),
        case("downward", "node-and-resources 6.9", "labels and names of the pod are files", downward).inside(),
        case(
            "token",
            "node-and-resources 6.10",
            "a projected volume holds a token of the pod's for its audience",
            token,
        )
        .inside(),
        case(
            "projected-later-wins",
            "node-and-resources 6.9",
            "of two sources with one path the later one counts",
            projected_later_wins,
        )
        .inside(),
    ]
}

fn followed() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "follows",
            "node-and-resources 6.9",
            "a change of a configMap is written into the pods that use it, with nobody asking",
            follows,
        )
        .core(),
        case(
            "switches-at-once",
            "node-and-resources 6.9",
            "files are links through ..data, which changes in one step",
            switches_at_once,
        )
        .core(),
        case("stale-files-go", "node-and-resources 6.9", "files of keys that are gone go", stale_files_go).core(),
        case(
            "nothing-new-is-not-written",
            "node-and-resources 6.9",
            "what has not changed is not written anew",
            nothing_new_is_not_written,
        )
        .core(),
        case(
            "removed-object-keeps-its-files",
            "node-and-resources 6.9",
            "a configMap that is removed leaves its files, and the pod's containers may start again",
            removed_object_keeps_its_files,
        )
        .core(),
        case(
            "store-away",
            "contract",
            "while objects cannot be had files stay as they are, and follow again afterwards",
            store_away,
        ),
        case(
            "label-changes",
            "node-and-resources 6.9",
            "a pod that is asked for with other labels has them in its files",
            label_changes,
        )
        .inside(),
        case("new-token", "node-and-resources 6.10", "a token is renewed when it is due", new_token).inside(),
    ]
}

impl Bed {
    /// The file `a` of a pod with the configMap `m`, whose `a` is that now.
    async fn with_map(&self, word: &str, content: &str) -> Outcome<(Arc<Pod>, PathBuf)> {
        self.objects.put_map("m", json!({"a": content}));
        let pod = self.mapped(word);
        let file = self.mount(&pod).await?.host_path.join("a");
        self.holds(&file, content)?;
        Ok((pod, file))
    }

    /// A pod whose volume `v` is projected from these.
    fn projected(&self, sources: Value) -> Arc<Pod> {
        self.pod("a", json!([{"name": "v", "projected": {"defaultMode": 0o644, "sources": sources}}]))
    }
}

async fn config_map(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "one", "b.conf": "two\n"}));
    let volume = bed.mount(&bed.mapped("a")).await?;
    bed.holds(volume.host_path.join("a"), "one")?;
    bed.holds(volume.host_path.join("b.conf"), "two\n")?;
    let names = bed.names(&volume.host_path)?;
    demand(names == ["a", "b.conf"], || format!("its files are {names:?}"))?;
    demand(volume.read_only, || "containers may write to it".to_owned())
}

async fn items(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "one", "b": "two"}));
    let items = json!([{"key": "b", "path": "deep/er/file", "mode": 0o400}]);
    let map = json!({"name": "m", "defaultMode": 0o644, "items": items});
    let path = bed.mount(&bed.pod("a", json!([{"name": "v", "configMap": map}]))).await?.host_path;
    bed.holds(path.join("deep/er/file"), "two")?;
    bed.has_mode(path.join("deep/er/file"), 0o400)?;
    demand(bed.names(&path)? == ["deep"], || format!("its files are {:?}", bed.names(&path)))
}

async fn default_mode(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "one"}));
    let map = json!({"name": "m", "defaultMode": 0o640});
    let path = bed.mount(&bed.pod("a", json!([{"name": "v", "configMap": map}]))).await?.host_path;
    bed.has_mode(path.join("a"), 0o640)
}

async fn missing_key(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "one"}));
    let map = json!({"name": "m", "defaultMode": 0o644, "items": [{"key": "b", "path": "b"}]});
    let job = bed.beside(&bed.pod("a", json!([{"name": "v", "configMap": map}])));
    let is_told =
        |line: &String| line.contains("FailedMount") && line.contains("references non-existent config key: b");
    until("it is told", SOON, || bed.events.lines().iter().any(is_told)).await?;
    bed.objects.put_map("m", json!({"a": "one", "b": "two"}));
    came(job).await?.map(drop).map_err(|e| Broken(format!("{e}")))
}

async fn optional_key(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "one"}));
    let items = json!([{"key": "b", "path": "b"}]);
    let map = json!({"name": "m", "defaultMode": 0o644, "optional": true, "items": items});
    let missing = json!({"name": "missing", "defaultMode": 0o644, "optional": true});
    for (word, map) in [("a", map), ("b", missing)] {
        let path = bed.mount(&bed.pod(word, json!([{"name": "v", "configMap": map}]))).await?.host_path;
        let names = bed.names(&path)?;
        demand(names.is_empty(), || format!("its files are {names:?}"))?;
    }
    Ok(())
}

async fn missing_object(bed: Bed) -> Outcome {
    let job = bed.beside(&bed.mapped("a"));
    let why = "MountVolume.SetUp failed for volume \"v\" : configmap \"m\" not found";
    bed.tells(&format!("Warning FailedMount: {why}")).await?;
    demand(!job.is_finished(), || "it was answered".to_owned())?;
    bed.objects.put_map("m", json!({"a": "one"}));
    let all = came(job).await?.map_err(|e| Broken(format!("{e}")))?;
    let path = all.volumes.get("v").map(|v| v.host_path.clone()).unwrap_or_default();
    bed.holds(path.join("a"), "one")
}

async fn wait_ends(bed: Bed) -> Outcome {
    let begun = tokio::time::Instant::now();
    let answer = bed.ask(&bed.mapped("a")).await?;
    let took = begun.elapsed().as_secs();
    demand((30..=124).contains(&took), || format!("it was answered after {took} s"))?;
    let told = answer.as_ref().err().map(|e| e.message.clone()).unwrap_or_default();
    let wanted =
        "unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: configmap \"m\" not found";
    demand(told == wanted, || format!("the answer is {answer:?}"))
}

async fn secret(bed: Bed) -> Outcome {
    bed.objects.put_secret("s", json!({"password": "aHVudGVyMg=="}));
    let volume =
        bed.mount(&bed.pod("a", json!([{"name": "v", "secret": {"secretName": "s", "defaultMode": 0o600}}]))).await?;
    bed.holds(volume.host_path.join("password"), "hunter2")?;
    demand(volume.read_only && bed.is_mounted(&volume.host_path), || {
        format!("{volume:?} is not in memory, or not read-only")
    })
}

fn of_labels() -> Value {
    json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}])
}

async fn downward(bed: Bed) -> Outcome {
    let pod = bed.pod("web", json!([{"name": "v", "downwardAPI": {"defaultMode": 0o644, "items": of_labels()}}]));
    let path = bed.mount(&pod).await?.host_path;
    bed.holds(path.join("labels"), "app=\"web\"")?;
    bed.holds(path.join("name"), "web")
}

async fn token(bed: Bed) -> Outcome {
    let source = json!({"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 3600}});
    let path = bed.mount(&bed.projected(json!([source]))).await?.host_path;
    bed.holds(path.join("token"), "token-of-a-for-vault")
}

async fn projected_later_wins(bed: Bed) -> Outcome {
    bed.objects.put_map("one", json!({"a": "first", "b": "kept"}));
    bed.objects.put_map("two", json!({"a": "second"}));
    let sources = json!([{"configMap": {"name": "one"}}, {"configMap": {"name": "two"}}]);
    let path = bed.mount(&bed.projected(sources)).await?.host_path;
    bed.holds(path.join("a"), "second")?;
    bed.holds(path.join("b"), "kept")
}

async fn follows(bed: Bed) -> Outcome {
    let (_, one) = bed.with_map("one", "1").await?;
    let (_, other) = bed.with_map("other", "1").await?;
    for content in ["2", "3"] {
        bed.objects.put_map("m", json!({"a": content}));
        bed.turns(&one, content).await?;
        bed.turns(&other, content).await?;
    }
    Ok(())
}

async fn switches_at_once(bed: Bed) -> Outcome {
    let (_, file) = bed.with_map("a", "1").await?;
    let wanted = PathBuf::from("..data/a");
    demand(bed.link_of(&file)? == wanted, || format!("the file is a link to {:?}", bed.link_of(&file)))?;
    let data = file.with_file_name("..data");
    let before = bed.link_of(&data)?;
    bed.objects.put_map("m", json!({"a": "2"}));
    bed.turns(&file, "2").await?;
    demand(bed.link_of(&file)? == wanted, || format!("the file is a link to {:?}", bed.link_of(&file)))?;
    let after = bed.link_of(&data)?;
    demand(before != after, || format!("what is behind ..data was changed in its place, {after:?}"))?;
    // Nobody can read a mixture of both, and the old one goes.
    let old = data.with_file_name(&before);
    until("the old content goes", SOON, || bed.is_there(&old).is_ok_and(|is| !is)).await
}

async fn stale_files_go(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "1", "b": "1"}));
    let path = bed.mount(&bed.mapped("a")).await?.host_path;
    bed.objects.put_map("m", json!({"b": "2", "c": "2"}));
    bed.turns(path.join("b"), "2").await?;
    let so = || bed.names(&path).is_ok_and(|names| names == ["b", "c"]);
    let found = until("its files are b and c", SOON, so).await;
    found.map_err(|Broken(why)| Broken(format!("{why}; they are {:?}", bed.names(&path))))
}

async fn nothing_new_is_not_written(bed: Bed) -> Outcome {
    let (pod, file) = bed.with_map("a", "1").await?;
    let data = file.with_file_name("..data");
    let before = bed.link_of(&data)?;
    bed.objects.put_map("m", json!({"a": "1"}));
    bed.mount(&pod).await?;
    pass(1.0).await;
    let after = bed.link_of(&data)?;
    demand(before == after, || format!("it was written again, to {after:?}"))
}

async fn removed_object_keeps_its_files(bed: Bed) -> Outcome {
    let (pod, file) = bed.with_map("a", "1").await?;
    bed.objects.remove_map("m");
    pass(1.0).await;
    bed.holds(&file, "1")?;
    bed.mount(&pod).await?;
    bed.objects.put_map("m", json!({"a": "2"}));
    bed.turns(&file, "2").await
}

async fn store_away(bed: Bed) -> Outcome {
    let (_, file) = bed.with_map("a", "1").await?;
    bed.objects.go_away(Some("gone for lunch"));
    bed.objects.put_map("m", json!({"a": "2"}));
    pass(2.0).await;
    bed.holds(&file, "1")?;
    bed.objects.go_away(None);
    bed.objects.put_map("m", json!({"a": "3"}));
    bed.turns(&file, "3").await
}

async fn label_changes(bed: Bed) -> Outcome {
    let pod = bed.pod("web", json!([{"name": "v", "downwardAPI": {"defaultMode": 0o644, "items": of_labels()}}]));
    let path = bed.mount(&pod).await?.host_path;
    let mut changed = (*pod).clone();
    changed.metadata.labels = Some([("app".to_owned(), "shop".to_owned())].into());
    bed.mount(&changed.into()).await?;
    bed.holds(path.join("labels"), "app=\"shop\"")
}

async fn new_token(bed: Bed) -> Outcome {
    let due = bed.stage.now().plus(std::time::Duration::from_secs(600));
    bed.objects.put_token("first", due);
    let source = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}});
    let file = bed.mount(&bed.projected(json!([source]))).await?.host_path.join("token");
    bed.holds(&file, "first")?;
    bed.objects.put_token("second", due.plus(std::time::Duration::from_secs(6000)));
    pass(550.0).await;
    bed.holds(&file, "first")?;
    pass(120.0).await;
    bed.holds(&file, "second")
}
