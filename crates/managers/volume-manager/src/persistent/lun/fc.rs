//! Disks by Fibre Channel: the adapters have them without being asked, or after a scan.

use std::path::Path;

use actor::chain;
use volume_plan::claim::Mode;
use volume_plan::fc::{Fc, Id};

use super::host::{Host, disk_of, links, multipath_of, paths_of};
use crate::deps::Deps;
use crate::listing::names;
use crate::lun_dir::LunDir;

const ADAPTERS: &str = "/sys/class/scsi_host";
/// Directories of links to disks.
const LINKS: [&str; 2] = ["/dev/disk/by-path", "/dev/disk/by-id"];

/// A disk that was found.
struct Found {
    disk: String,
    multipath: Option<String>,
    /// Paths of the links that led to it.
    links: Vec<String>,
}

impl Found {
    fn device(&self) -> String {
        format!("/dev/{}", self.multipath.as_ref().unwrap_or(&self.disk))
    }
}

/// Finds the disk. Answers with the path of its device.
pub(super) async fn attach(host: &Host<'_>, disk: &Fc, dir: &LunDir) -> Result<String, String> {
    host.task.effects.hit("attach").await;
    let mut found = search(host, &disk.id).await?;
    if found.as_ref().is_none_or(|f| f.multipath.is_none()) {
        let adapters = host.look(|deps| names(&*deps.fs, ADAPTERS.as_ref())).await.map_err(|e| chain(&e))?;
        for adapter in adapters {
            // One that cannot scan has no such disks.
            if let Err(error) = host.write(format!("{ADAPTERS}/{adapter}/scan"), "- - -".to_owned()).await {
                tracing::warn!(adapter, error, "the adapter was not scanned for disks");
            }
        }
        found = search(host, &disk.id).await?.or(found);
    }
    let found = found.ok_or_else(|| "no fc disk found".to_owned())?;
    if dir.mode == Mode::Block {
        // Nothing else says which disk it was after the last pod.
        remember(host, dir, &found.links).await?;
    }
    Ok(found.device())
}

/// The disk by the first of its names that leads to a multipath device, else by the last that leads anywhere.
async fn search(host: &Host<'_>, id: &Id) -> Result<Option<Found>, String> {
    let id = id.clone();
    let work = move |deps: &Deps| {
        let names = links(deps, id.links())?;
        let matching = id.matches(&names.iter().map(String::as_str).collect::<Vec<_>>());
        behind(deps, matching.into_iter().map(|link| format!("{}/{link}", id.links())).collect())
    };
    host.look(work).await
}

/// The disk that links lead to.
fn behind(deps: &Deps, links: Vec<String>) -> Result<Option<Found>, String> {
    let mut found = None;
    for link in &links {
        let disk = disk_of(&*deps.fs, link)?;
        let multipath = multipath_of(&*deps.fs, &disk)?;
        let is_best = multipath.is_some();
        found = Some(Found { disk, multipath, links: Vec::new() });
        if is_best {
            break;
        }
    }
    Ok(found.map(|found| Found { links, ..found }))
}

/// Writes down which disk it is. Not while it is mounted: what a kubelet finds below a mount, it cannot remove.
async fn remember(host: &Host<'_>, dir: &LunDir, links: &[String]) -> Result<(), String> {
    let (dir, text) = (dir.clone(), links.iter().map(|link| format!("{link}\n")).collect::<String>());
    host.look(move |deps| dir.write(&*deps.fs, text.as_bytes())).await.map_err(|e| chain(&e))
}

/// The disk that was mounted, with all links that lead to it.
fn mounted(deps: &Deps, source: &str) -> Result<Found, String> {
    let disk = disk_of(&*deps.fs, source)?;
    let multipath = Some(disk.clone()).filter(|d| d.starts_with("dm-"));
    let mut disks = match &multipath {
        Some(device) => paths_of(&*deps.fs, device)?,
        None => Vec::new(),
    };
    disks.push(disk.clone());
    let mut found = Vec::new();
    for dir in LINKS {
        for link in links(deps, dir)? {
            let path = format!("{dir}/{link}");
            if disks.contains(&disk_of(&*deps.fs, &path)?) {
                found.push(path);
            }
        }
    }
    Ok(Found { disk, multipath, links: found })
}

/// Takes a disk that is not mounted any more from the kernel. `source`: what was mounted. One that never was in use stays where it
/// is: the name of a directory does not say for sure which disk it is.
pub(super) async fn detach(host: &Host<'_>, dir: &LunDir, source: Option<String>) -> Result<(), String> {
    let found = match source.filter(|s| s.starts_with("/dev/")) {
        Some(source) => {
            let found = host.look(move |deps| mounted(deps, &source)).await?;
            remember(host, dir, &found.links).await?;
            Some(found)
        }
        None => remembered(host, dir).await?,
    };
    host.task.effects.hit("detach").await;
    let Some(Found { disk, multipath, .. }) = found else { return Ok(()) };
    let of = multipath.clone();
    let disks = match of {
        Some(device) => host.look(move |deps| paths_of(&*deps.fs, &device)).await?,
        None => vec![disk],
    };
    host.flush(multipath).await?;
    host.delete(disks).await
}

/// The disk that was written down. Links that are gone lead nowhere.
async fn remembered(host: &Host<'_>, dir: &LunDir) -> Result<Option<Found>, String> {
    let dir = dir.clone();
    let work = move |deps: &Deps| {
        let text = dir.file(&*deps.fs).map_err(|e| chain(&e))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let there = |link: &&str| {
            let is_link = LINKS.iter().any(|dir| Path::new(link).parent() == Some(Path::new(dir)));
            is_link && matches!(deps.fs.stat_link(Path::new(link)), Ok(Some(_)))
        };
        behind(deps, text.lines().filter(there).map(str::to_owned).collect())
    };
    host.look(work).await
}
