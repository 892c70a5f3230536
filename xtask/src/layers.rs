//! Does any crate depend on something above or beside it, or use what its layer must not know? Do modules go in a ring?
//!
//! The folder is the layer. Crates and edges come from `cargo metadata`; the rules are the tables below.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use cargo_metadata::camino::Utf8Path;
use cargo_metadata::{DependencyKind, Metadata, Package};

use crate::workspace;

mod circles;

/// Checks the direction of dependencies between crates, what each layer may use from outside, and that the modules of a crate
/// do not use each other in a ring.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> anyhow::Result<()> {
    let metadata = workspace::metadata()?;
    let crates = read(&metadata)?;
    let mut broken = check(&crates);
    broken.extend(circles::check(&metadata)?);
    if !broken.is_empty() {
        bail!("{} broken layer rules:\n{}", broken.len(), broken.join("\n"));
    }
    println!("{} crates keep to their layers, their modules to an order", crates.len());
    Ok(())
}

/// Layers that a layer may use (normal and build dependencies). `base` has a table of its own.
const MAY_USE: &[(&str, &[&str], &str)] = &[
    (
        "policy",
        &[],
        "decisions are pure: plain data in, plain data out (only base/model, base/cri-api and base/csi-api)",
    ),
    ("managers", &["base", "policy"], "managers meet only through base/contract, so that each can be replaced"),
    ("adapters", &["base"], "adapters implement ports and know no manager's logic"),
    (
        "runtime",
        &["base", "policy", "adapters", "runtime"],
        "the runtime stands behind the CRI: it knows no manager, and no manager knows it",
    ),
    (
        "app",
        &["base", "policy", "managers", "adapters", "runtime", "app"],
        "app wires everything, and nothing below knows it",
    ),
    (
        "testing",
        &["base", "policy", "managers", "adapters", "runtime", "app", "testing"],
        "test support stands beside the node",
    ),
    ("tests", &["base", "policy", "managers", "adapters", "runtime", "app", "testing"], "tests use what they test"),
    (
        "xtask",
        &["base", "policy", "managers", "adapters", "runtime", "app", "testing"],
        "tools may use everything but tests",
    ),
];

/// Crates of base, and of base what each may use.
const BASE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("cri-api", &[]),
    ("csi-api", &[]),
    ("actor", &["model", "trace"]),
    ("ports", &["model", "cri-api", "csi-api"]),
    ("contract", &["actor", "model", "cri-api", "trace"]),
    ("grpc", &["ports", "trace"]),
    ("metrics", &[]),
    ("resolver", &[]),
    ("seam", &["actor", "contract", "metrics", "model", "trace"]),
    ("tls", &[]),
    ("trace", &["metrics"]),
];

/// Packages from outside, and who may use them: layers, or single crates.
const OUTSIDE: &[(&[&str], &[&str], &str)] = &[
    (&["actix", "actix-rt"], &["actor"], "only the kernel knows actix; everybody else uses its Ctx and refs"),
    (
        &["tonic", "tonic-prost", "rustix", "nix", "libc", "procfs", "cgroups-rs", "zbus", "kube", "reqwest"],
        &["adapters", "runtime", "grpc", "testing", "tests", "xtask"],
        "only adapters touch the outside world; managers go through base/ports",
    ),
    (
        &["inotify"],
        &["adapters", "runtime", "testing", "config-sources"],
        "only adapters touch the outside world (config-sources watches its folder)",
    ),
    (
        &["hyper", "hyper-util", "axum"],
        &["adapters", "runtime", "grpc", "app", "testing", "tests", "xtask"],
        "only adapters, the runtime and the server speak HTTP",
    ),
    (&["anyhow"], &["app", "tests", "xtask"], "libraries have error types that callers can tell apart"),
    (
        &["tokio", "futures", "async-trait", "tracing", "fastrand"],
        &[
            "actor", "contract", "grpc", "ports", "resolver", "seam", "trace", "managers", "adapters", "runtime",
            "app", "testing", "tests", "xtask",
        ],
        "model and policy are plain data and pure functions: no I/O, no waiting, no randomness, no logging",
    ),
];

/// Crates that may hold unsafe code.
const UNSAFE: &[&str] = &["adapters/cgroup-fork", "adapters/host-linux", "adapters/seccomp-filter"];

/// What the check knows of one workspace crate.
#[derive(Debug, Clone, Default)]
struct Crate {
    name: String,
    layer: String,
    folder: String,
    /// Names of normal and build dependencies.
    uses: BTreeSet<String>,
    /// Names of dev-dependencies.
    tests_use: BTreeSet<String>,
    workspace_lints: bool,
    /// An example for operators that takes something from this workspace, which they do not have.
    leans_on_workspace: bool,
    forbids_unsafe: bool,
}

/// Layer and folder of a crate: the folder is the layer.
pub(crate) fn place<'a>(root: &Utf8Path, package: &'a Package) -> anyhow::Result<(&'a str, &'a str)> {
    let dir = package.manifest_path.parent().context("manifest without folder")?;
    let parts: Vec<&str> = dir.strip_prefix(root)?.iter().collect();
    match parts.as_slice() {
        ["crates", layer, folder] => Ok((*layer, *folder)),
        // Programs of operators: they wire, as app does.
        ["docs", "examples", folder] => Ok(("app", *folder)),
        ["tests", folder] => Ok(("tests", *folder)),
        ["xtask"] => Ok(("xtask", "xtask")),
        other => bail!("{}: no layer for a crate in {}", package.name, other.join("/")),
    }
}

fn read(metadata: &Metadata) -> anyhow::Result<Vec<Crate>> {
    let root = &metadata.workspace_root;
    let mut crates = Vec::new();
    for package in metadata.workspace_packages() {
        let (layer, folder) = place(root, package)?;
        let names = |dev: bool| {
            let wanted = move |d: &&cargo_metadata::Dependency| (d.kind == DependencyKind::Development) == dev;
            package.dependencies.iter().filter(wanted).map(|d| d.name.clone()).collect()
        };
        let manifest = std::fs::read_to_string(&package.manifest_path)?;
        let lints = manifest.split("[lints]").nth(1).unwrap_or_default();
        let is_example = package.manifest_path.as_str().contains("/docs/examples/");
        let roots = package
            .targets
            .iter()
            .filter(|t| t.is_lib() || (t.is_bin() && !package.targets.iter().any(|t| t.is_lib())));
        let forbids = |t: &cargo_metadata::Target| {
            std::fs::read_to_string(&t.src_path).is_ok_and(|s| s.contains("#![forbid(unsafe_code)]"))
        };
        crates.push(Crate {
            name: package.name.to_string(),
            layer: layer.to_owned(),
            folder: folder.to_owned(),
            uses: names(false),
            tests_use: names(true),
            workspace_lints: is_example || lints.trim_start().starts_with("workspace = true"),
            leans_on_workspace: is_example && manifest.contains("workspace = true"),
            forbids_unsafe: roots.into_iter().all(forbids),
        });
    }
    Ok(crates)
}

/// All broken rules, each with its reason.
fn check(crates: &[Crate]) -> Vec<String> {
    let layer_of: BTreeMap<&str, &str> = crates.iter().map(|c| (c.name.as_str(), c.layer.as_str())).collect();
    let mut broken = Vec::new();
    for c in crates {
        for used in &c.uses {
            if let Some(layer) = layer_of.get(used.as_str()) {
                broken.extend(inside(c, used, layer));
            }
            broken.extend(outside(c, used));
        }
        for used in &c.tests_use {
            match layer_of.get(used.as_str()) {
                Some(&"testing") | None => {}
                Some(layer) => broken.extend(inside(c, used, layer)),
            }
        }
        broken.extend(form(c));
    }
    broken
}

fn inside(c: &Crate, used: &str, used_layer: &str) -> Option<String> {
    let (from, name) = (&c.layer, &c.name);
    if from == "base" {
        let Some((_, allowed)) = BASE.iter().find(|(n, _)| n == name) else {
            return Some(format!("base/{name}: not in the table of base crates (xtask/src/layers.rs, BASE)"));
        };
        let fine = used_layer == "base" && allowed.contains(&used);
        return (!fine).then(|| format!("base/{name} -> {used_layer}/{used}: base/{name} may use only {allowed:?}"));
    }
    if used_layer == "base" && from == "policy" {
        let reason = MAY_USE[0].2;
        return (!["model", "cri-api", "csi-api"].contains(&used))
            .then(|| format!("policy/{name} -> base/{used}: {reason}"));
    }
    let Some((_, allowed, reason)) = MAY_USE.iter().find(|(layer, ..)| layer == from) else {
        return Some(format!("{name}: unknown layer {from}"));
    };
    if allowed.contains(&used_layer) {
        return None;
    }
    let reason = if used_layer == "testing" { "testing/* is for dev-dependencies, tests and xtask" } else { reason };
    Some(format!("{from}/{name} -> {used_layer}/{used}: {reason}"))
}

fn outside(c: &Crate, used: &str) -> Option<String> {
    let rule = OUTSIDE.iter().find(|(packages, ..)| packages.contains(&used))?;
    let (_, allowed, reason) = rule;
    let fine = allowed.contains(&c.layer.as_str()) || allowed.contains(&c.name.as_str());
    (!fine).then(|| format!("{}/{} uses {used}: {reason}", c.layer, c.name))
}

fn form(c: &Crate) -> Vec<String> {
    let place = format!("{}/{}", c.layer, c.name);
    let mut broken = Vec::new();
    if c.name != c.folder {
        broken.push(format!("{place}: lies in folder {}; package and folder have one name", c.folder));
    }
    if c.leans_on_workspace {
        broken.push(format!(
            "{place}: takes something from this workspace, which those who copy the example do not have"
        ));
    }
    if !c.workspace_lints {
        broken.push(format!("{place}: Cargo.toml lacks `[lints] workspace = true`; one set of lints for all"));
    }
    if !c.forbids_unsafe && !UNSAFE.contains(&place.as_str()) {
        broken.push(format!("{place}: lacks `#![forbid(unsafe_code)]`; only {} may do without", UNSAFE.join(", ")));
    }
    broken
}

#[cfg(test)]
mod tests;
