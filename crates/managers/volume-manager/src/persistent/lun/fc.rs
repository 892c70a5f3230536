//! Disks by Fibre Channel: the adapters have them without being asked, or after a scan.

use actor::chain;
use volume_plan::fc::{Fc, Id};

use super::host::{Host, disk_of, links, multipath_of, paths_of};
use crate::deps::Deps;
use crate::listing::names;

const ADAPTERS: &str = "/sys/class/scsi_host";

/// A disk that was found.
struct Found {
    disk: String,
    multipath: Option<String>,
}

impl Found {
    fn device(&self) -> String {
        format!("/dev/{}", self.multipath.as_ref().unwrap_or(&self.disk))
    }
}

/// Finds the disk. Answers with the path of its device.
pub(super) async fn attach(host: &Host<'_>, disk: &Fc) -> Result<String, String> {
    host.task.effects.hit("attach").await;
    let found = search(host, &disk.id).await?;
    if let Some(found) = found.as_ref().filter(|f| f.multipath.is_some()) {
        return Ok(found.device());
    }
    let adapters = host.look(|deps| names(&*deps.fs, ADAPTERS.as_ref())).await.map_err(|e| chain(&e))?;
    for adapter in adapters {
        // One that cannot scan has no such disks.
        if let Err(error) = host.write(format!("{ADAPTERS}/{adapter}/scan"), "- - -".to_owned()).await {
            tracing::warn!(adapter, error, "the adapter was not scanned for disks");
        }
    }
    let found = search(host, &disk.id).await?.or(found);
    found.map(|f| f.device()).ok_or_else(|| "no fc disk found".to_owned())
}

/// The disk by the first of its names that leads to a multipath device, else by the last that leads anywhere.
async fn search(host: &Host<'_>, id: &Id) -> Result<Option<Found>, String> {
    let id = id.clone();
    let work = move |deps: &Deps| {
        let names = links(deps, id.links())?;
        let mut found = None;
        for link in id.matches(&names.iter().map(String::as_str).collect::<Vec<_>>()) {
            let disk = disk_of(&*deps.fs, &format!("{}/{link}", id.links()))?;
            let multipath = multipath_of(&*deps.fs, &disk)?;
            let is_best = multipath.is_some();
            found = Some(Found { disk, multipath });
            if is_best {
                break;
            }
        }
        Ok(found)
    };
    host.look(work).await
}

/// Takes a disk that is not mounted any more from the kernel. `source`: what was mounted.
pub(super) async fn detach(host: &Host<'_>, id: Option<Id>, source: Option<String>) -> Result<(), String> {
    host.task.effects.hit("detach").await;
    let found = match (source, id) {
        (Some(source), _) if source.starts_with("/dev/") => {
            let work = move |deps: &Deps| {
                let disk = disk_of(&*deps.fs, &source)?;
                Ok::<_, String>(Found { multipath: Some(disk.clone()).filter(|d| d.starts_with("dm-")), disk })
            };
            Some(host.look(work).await?)
        }
        // A former try came that far.
        (_, Some(id)) => search(host, &id).await?,
        _ => None,
    };
    let Some(Found { disk, multipath }) = found else { return Ok(()) };
    let of = multipath.clone();
    let disks = match of {
        Some(device) => host.look(move |deps| paths_of(&*deps.fs, &device)).await?,
        None => vec![disk],
    };
    host.delete(disks, multipath).await
}
