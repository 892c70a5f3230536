//! `bosun image ls`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use console::show::{self, Output, print, structured, table};
use image_store::{Image, ImageStore};
use serde::Serialize;

/// An image as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) repo_tags: Vec<String>,
    pub(super) repo_digests: Vec<String>,
    pub(super) platform: String,
    /// Of its layers on the disk; what images share counts for each.
    pub(super) size_bytes: u64,
    pub(super) layers: usize,
    pub(super) pinned: bool,
    /// Containers.
    pub(super) used_by: Vec<String>,
    /// Nanoseconds since the epoch.
    pub(super) pulled_at_ns: u64,
}

/// The images of a store, by name.
pub(super) fn lines(store: &ImageStore) -> Result<Vec<Line>> {
    let leases = store.leases()?;
    let line = |image: Image| Line {
        id: image.id.to_string(),
        platform: image.config.platform.to_string(),
        size_bytes: image.size_bytes,
        layers: image.layers.len(),
        pinned: image.pinned,
        used_by: leases.iter().filter(|l| l.image == image.id).map(|l| l.holder.clone()).collect(),
        pulled_at_ns: image.changed_ns,
        repo_tags: image.repo_tags,
        repo_digests: image.repo_digests,
    };
    let mut lines: Vec<Line> = store.list()?.into_iter().map(line).collect();
    lines.sort_by(|a, b| (&a.repo_tags, &a.id).cmp(&(&b.repo_tags, &b.id)));
    Ok(lines)
}

pub(super) fn show(lines: &[Line], output: Option<Output>, root: &Path) -> Result<()> {
    #[derive(Serialize)]
    struct Images<'a> {
        images: &'a [Line],
    }
    if structured(output, &Images { images: lines })? {
        return Ok(());
    }
    if lines.is_empty() {
        print(&format!("No images in {}. `bosun image pull NAME` gets one.", root.display()));
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["IMAGE", "TAG", "ID", "SIZE", "AGE"];
    if wide {
        header.extend(["LAYERS", "PLATFORM", "PINNED", "USED BY", "DIGEST"]);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    table(&header, lines.iter().flat_map(|line| rows(line, now, wide)).collect());
    Ok(())
}

/// A row per name; one for an image without any.
pub(super) fn rows(line: &Line, now_ns: u64, wide: bool) -> Vec<Vec<String>> {
    let none = "<none>".to_owned();
    let named = line.repo_tags.iter().map(|name| {
        let (image, tag) = name.rsplit_once(':').unwrap_or((name, ""));
        (image.to_owned(), tag.to_owned())
    });
    let mut names: Vec<(String, String)> = named.collect();
    if names.is_empty() {
        let image = line.repo_digests.first().and_then(|d| d.split('@').next()).map(str::to_owned);
        names.push((image.unwrap_or_else(|| none.clone()), none.clone()));
    }
    let id: String = line.id.trim_start_matches("sha256:").chars().take(13).collect();
    let age = i64::try_from(now_ns.saturating_sub(line.pulled_at_ns)).unwrap_or(i64::MAX);
    let row = |(image, tag): (String, String)| {
        let digest =
            line.repo_digests.iter().find_map(|d| d.strip_prefix(&format!("{image}@"))).unwrap_or(&none).to_owned();
        let mut row = vec![image, tag, id.clone(), show::bytes(line.size_bytes), console::age(age)];
        if wide {
            let users = if line.used_by.is_empty() { "-".to_owned() } else { line.used_by.join(",") };
            let pinned = if line.pinned { "yes" } else { "no" };
            row.extend([line.layers.to_string(), line.platform.clone(), pinned.to_owned(), users, digest]);
        }
        row
    };
    names.into_iter().map(row).collect()
}
