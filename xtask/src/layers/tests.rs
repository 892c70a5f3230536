use super::*;

fn krate(place: &str, uses: &[&str], tests_use: &[&str]) -> Crate {
    let (layer, name) = place.split_once('/').expect("layer/name");
    let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect();
    Crate {
        name: name.into(),
        layer: layer.into(),
        folder: name.into(),
        uses: names(uses),
        tests_use: names(tests_use),
        workspace_lints: true,
        leans_on_workspace: false,
        forbids_unsafe: true,
    }
}

/// A small workspace with one more crate in it.
fn check_with(extra: Crate) -> Vec<String> {
    let mut crates = vec![
        krate("base/model", &["serde"], &[]),
        krate("base/cri-api", &["prost"], &[]),
        krate("base/actor", &["actix", "tokio"], &[]),
        krate("base/ports", &["model", "cri-api"], &[]),
        krate("base/contract", &["actor", "model"], &[]),
        krate("policy/pod-plan", &["model"], &["proptest"]),
        krate("managers/pod-manager", &["contract", "actor", "pod-plan"], &["fakes"]),
        krate("adapters/cri-client", &["ports", "tonic"], &[]),
        krate("app/bosun", &["pod-manager", "cri-client", "anyhow"], &[]),
        krate("testing/fakes", &["ports", "tonic"], &[]),
    ];
    crates.push(extra);
    check(&crates)
}

#[test]
fn the_workspace_keeps_to_its_layers() {
    let crates = read(&workspace::metadata().expect("cargo metadata")).expect("manifests are readable");
    assert_eq!(check(&crates), Vec::<String>::new());
}

#[test]
fn clean_edges_pass() {
    let rows = [
        krate("policy/pod-status", &["model", "cri-api"], &["fakes"]),
        krate("managers/probe-manager", &["contract", "ports", "pod-plan", "tokio"], &["fakes"]),
        krate("managers/config-sources", &["inotify"], &[]),
        krate("adapters/host-linux", &["ports", "rustix"], &["fakes"]),
        krate("tests/e2e", &["fakes", "bosun", "anyhow"], &[]),
        krate("xtask/xtask", &["fakes", "tonic", "anyhow"], &[]),
    ];
    for row in rows {
        let name = row.name.clone();
        assert_eq!(check_with(row), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn each_forbidden_edge_is_refused_with_its_reason() {
    let rows = [
        (krate("managers/probe-manager", &["pod-manager"], &[]), "managers meet only through base/contract"),
        (krate("managers/probe-manager", &[], &["pod-manager"]), "managers meet only through base/contract"),
        (krate("managers/probe-manager", &["cri-client"], &[]), "managers meet only through base/contract"),
        (krate("managers/probe-manager", &["tonic"], &[]), "only adapters touch the outside world"),
        (krate("managers/probe-manager", &["inotify"], &[]), "only adapters touch the outside world"),
        (krate("managers/probe-manager", &["anyhow"], &[]), "libraries have error types"),
        (krate("managers/probe-manager", &["actix"], &[]), "only the kernel knows actix"),
        (krate("managers/probe-manager", &["fakes"], &[]), "testing/* is for dev-dependencies"),
        (krate("policy/pod-status", &["contract"], &[]), "decisions are pure"),
        (krate("policy/pod-status", &["pod-plan"], &[]), "decisions are pure"),
        (krate("policy/pod-status", &["tokio"], &[]), "model and policy are plain data"),
        (krate("policy/pod-status", &["tracing"], &[]), "model and policy are plain data"),
        (krate("adapters/host-linux", &["pod-plan"], &[]), "know no manager's logic"),
        (krate("adapters/host-linux", &["pod-manager"], &[]), "know no manager's logic"),
        (krate("adapters/host-linux", &["bosun"], &[]), "know no manager's logic"),
        (krate("base/extra", &["model"], &[]), "not in the table"),
    ];
    for (row, reason) in rows {
        let (name, uses) = (row.name.clone(), format!("{:?} {:?}", row.uses, row.tests_use));
        let broken = check_with(row);
        assert_eq!(broken.len(), 1, "{name} {uses}: {broken:?}");
        assert!(broken[0].contains(reason), "{name} {uses}: {broken:?}");
    }
}

#[test]
fn base_crates_keep_their_order() {
    let mut crates = vec![krate("base/model", &[], &[]), krate("base/actor", &[], &[])];
    crates.push(krate("base/ports", &["actor"], &[]));
    assert!(check(&crates)[0].starts_with("base/ports -> base/actor"));
    crates[2] = krate("base/contract", &["actor", "ports"], &[]);
    crates.push(krate("base/ports", &["model"], &[]));
    assert!(check(&crates)[0].starts_with("base/contract -> base/ports"));
}

#[test]
fn form_is_checked() {
    let good = krate("managers/probe-manager", &[], &[]);
    let rows = [
        (Crate { folder: "probes".into(), ..good.clone() }, "one name"),
        (Crate { workspace_lints: false, ..good.clone() }, "one set of lints"),
        (Crate { leans_on_workspace: true, ..good.clone() }, "takes something from this workspace"),
        (Crate { forbids_unsafe: false, ..good }, "forbid(unsafe_code)"),
    ];
    for (row, reason) in rows {
        let broken = check_with(row);
        assert!(broken.len() == 1 && broken[0].contains(reason), "{reason}: {broken:?}");
    }
    let host = Crate { forbids_unsafe: false, ..krate("adapters/host-linux", &[], &[]) };
    assert_eq!(check_with(host), Vec::<String>::new());
}
