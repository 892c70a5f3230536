//! iSCSI disks, by `iscsiadm` and what the kernel says of its sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actor::chain;
use model::core::Pod;
use model::pod;
use ports::host::{HostFs, HostResult, ProgramEnd};
use volume_plan::iscsi::{self, Arguments, Config, EXISTS, Failure, Iscsi, NO_IFACE, NO_OBJECTS, NO_SESSION, Step};

use super::host::{Host, attribute, disk_of, links, multipath_of, named, said};
use crate::deps::Deps;
use crate::lun_dir::LunDir;
use crate::persistent::calls;

const HOSTS: &str = "/sys/class/iscsi_host";
const LINKS: &str = "/dev/disk/by-path";
const PROGRAM: &str = "iscsiadm";
/// How often all portals are tried; after the lesser number, two of them are enough.
const ATTEMPTS: usize = 5;
const FEW_ATTEMPTS: usize = 2;
const FEW_PATHS: usize = 2;
/// How often the device of a portal is looked for, a second apart.
const DEVICE_LOOKS: usize = 30;
/// The same for the multipath device of several portals.
const MULTIPATH_LOOKS: usize = 10;

/// A session with the target, by one adapter.
struct Session {
    adapter: String,
    path: PathBuf,
    portals: Vec<String>,
}

/// Begins sessions with the target by all portals that answer. Answers with the path of the disk's device.
pub(super) async fn attach(host: &Host<'_>, pod: &Arc<Pod>, disk: &Iscsi) -> Result<String, String> {
    let shown =
        done(host, disk.show_iface()).await.map_err(|e| format!("could not read iface {}: {e}", disk.init_iface))?;
    let transport = iscsi::transport(&disk.iface, &shown)?;
    if !disk.initiator.is_empty() {
        clone_iface(host, disk, &shown).await?;
    }
    let secret = secret(host, pod, disk).await?;
    // One logs in while nobody logs out.
    let task = host.task.in_turn(host.tools.deps.persistent.target_turn(&disk.iqn)).await;
    let host = &Host { task: &task, ..*host };
    host.task.effects.hit("attach").await;
    let (mut found, mut last) = (BTreeMap::new(), String::new());
    for attempt in 1..=ATTEMPTS {
        for portal in &disk.portals {
            if found.contains_key(portal) {
                continue;
            }
            match by_portal(host, disk, portal, (&transport, &secret)).await {
                Ok(link) => drop(found.insert(portal.clone(), link)),
                Err(e) => last = e,
            }
        }
        let is_enough = found.len() >= FEW_PATHS && attempt >= FEW_ATTEMPTS;
        if found.is_empty() || found.len() == disk.portals.len() || is_enough {
            break;
        }
    }
    let Some(first) = disk.portals.iter().find_map(|portal| found.get(portal)).cloned() else {
        if let Some(delete) = disk.delete_iface() {
            // It is made again with the next try.
            host.run(PROGRAM, delete).await?;
        }
        return Err(format!("failed to get any path for iscsi disk, last err seen:\n{last}"));
    };
    let looks = if disk.portals.len() > 1 { MULTIPATH_LOOKS } else { 1 };
    let multipath = multipath(host, found.into_values().collect(), looks).await?;
    Ok(multipath.unwrap_or(first))
}

/// Runs `iscsiadm`. A code but 0 is a failure.
async fn done(host: &Host<'_>, arguments: Arguments) -> Result<String, String> {
    let end = host.run(PROGRAM, arguments).await?;
    if end.code == Some(0) { Ok(end.words) } else { Err(said(&end)) }
}

fn is(end: &ProgramEnd, codes: &[i32]) -> bool {
    end.code.is_some_and(|code| code == 0 || codes.contains(&code))
}

/// Makes an interface for the name of the initiator.
async fn clone_iface(host: &Host<'_>, disk: &Iscsi, shown: &str) -> Result<(), String> {
    for (i, call) in disk.clone_iface(shown)?.into_iter().enumerate() {
        let end = host.run(PROGRAM, call).await?;
        if is(&end, if i == 0 { &[EXISTS] } else { &[] }) {
            continue;
        }
        if let Some(delete) = disk.delete_iface() {
            host.run(PROGRAM, delete).await?;
        }
        return Err(format!("iscsi: failed to create iface {}: {}", disk.iface, said(&end)));
    }
    Ok(())
}

async fn secret(host: &Host<'_>, pod: &Arc<Pod>, disk: &Iscsi) -> Result<BTreeMap<String, String>, String> {
    let of = disk.secret.as_ref().filter(|_| disk.chap_discovery || disk.chap_session);
    let of =
        of.map(|(namespace, name)| (namespace.clone().unwrap_or_else(|| pod::namespace(pod).to_owned()), name.clone()));
    let secret = calls::secret(host.tools, of.as_ref()).await.map_err(|e| e.text)?;
    match secret.iter().find(|(_, value)| value.chars().any(char::is_control)) {
        Some((key, _)) => Err(format!("the value of {key} in the secret has a control character in it")),
        None => Ok(secret),
    }
}

/// Has the disk reached by one portal. Answers with the link to its device.
async fn by_portal(
    host: &Host<'_>,
    disk: &Iscsi,
    portal: &str,
    (transport, secret): (&str, &BTreeMap<String, String>),
) -> Result<String, String> {
    let adapter = match adapter(host, disk, portal).await? {
        Some(adapter) => adapter,
        None => {
            login(host, disk, portal, secret).await?;
            let found = adapter(host, disk, portal).await?;
            found.ok_or_else(|| format!("there is no SCSI host for portal {portal} after the login"))?
        }
    };
    let scan = format!("/sys/class/scsi_host/{adapter}/scan");
    // Channel and target of an iSCSI disk are always 0.
    host.write(scan, format!("0 0 {}", disk.lun)).await?;
    for look in 0..DEVICE_LOOKS {
        if look > 0 {
            host.pause().await;
        }
        let (of, portal, transport) = (disk.clone(), portal.to_owned(), transport.to_owned());
        let work = move |deps: &Deps| {
            let names = links(deps, LINKS)?;
            let link = of.link(&portal, &transport, names.iter().map(String::as_str));
            Ok::<_, String>(link.map(|name| format!("{LINKS}/{name}")))
        };
        if let Some(link) = host.look(work).await? {
            return Ok(link);
        }
    }
    Err(format!("Timed out waiting for device of lun {} of {} by {portal} after {DEVICE_LOOKS}s", disk.lun, disk.iqn))
}

async fn login(host: &Host<'_>, disk: &Iscsi, portal: &str, secret: &BTreeMap<String, String>) -> Result<(), String> {
    for Step { arguments, failure } in disk.login(portal, secret) {
        let end = host.run(PROGRAM, arguments).await?;
        match failure {
            _ if is(&end, &[]) => {}
            Failure::Ignored => tracing::debug!(portal, code = ?end.code, words = end.words, "iscsiadm"),
            Failure::Ends(text, undo) => {
                if let Some(undo) = undo {
                    host.run(PROGRAM, undo).await?;
                }
                return Err(format!("{text} to portal {portal}: {}", said(&end)));
            }
        }
    }
    Ok(())
}

/// The adapter (`host3`) that has a session with the target by this portal.
async fn adapter(host: &Host<'_>, disk: &Iscsi, portal: &str) -> Result<Option<String>, String> {
    let (iqn, portal) = (disk.iqn.clone(), portal.to_owned());
    let sessions = host.look(move |deps| sessions(&*deps.fs, &iqn)).await.map_err(|e| chain(&e))?;
    Ok(sessions.into_iter().find(|s| s.portals.contains(&portal)).map(|s| s.adapter))
}

/// Sessions with a target. One that goes at this moment is none.
fn sessions(fs: &dyn HostFs, iqn: &str) -> HostResult<Vec<Session>> {
    let mut found = Vec::new();
    for adapter in named(fs, Path::new(HOSTS), "host")? {
        let device = Path::new(HOSTS).join(&adapter).join("device");
        for session in named(fs, &device, "session")? {
            let path = device.join(&session);
            if attribute(fs, &path.join("iscsi_session").join(&session).join("targetname")).as_deref() != Some(iqn) {
                continue;
            }
            let mut portals = Vec::new();
            for connection in named(fs, &path, "connection")? {
                let at = path.join(&connection).join("iscsi_connection").join(&connection);
                let of = |name: &str| attribute(fs, &at.join(name));
                for (address, port) in [("address", "port"), ("persistent_address", "persistent_port")] {
                    portals.extend(of(address).zip(of(port)).map(|(address, port)| joined(&address, &port)));
                }
            }
            found.push(Session { adapter: adapter.clone(), path, portals });
        }
    }
    Ok(found)
}

fn joined(address: &str, port: &str) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// The multipath device that has one of these links as its paths.
async fn multipath(host: &Host<'_>, links: Vec<String>, looks: usize) -> Result<Option<String>, String> {
    for look in 0..looks {
        if look > 0 {
            host.pause().await;
        }
        let links = links.clone();
        let work = move |deps: &Deps| {
            for link in &links {
                let disk = disk_of(&*deps.fs, link)?;
                if let Some(device) = multipath_of(&*deps.fs, &disk)? {
                    return Ok(Some(format!("/dev/{device}")));
                }
            }
            Ok::<_, String>(None)
        };
        if let Some(device) = host.look(work).await? {
            return Ok(Some(device));
        }
    }
    Ok(None)
}

/// Takes a disk that is not mounted any more from the kernel, and ends the sessions when no other disk has them. `is_left`: the
/// disk is in use in another way.
pub(super) async fn detach(host: &Host<'_>, dir: &LunDir, is_left: bool) -> Result<(), String> {
    let of = dir.clone();
    let file = host.look(move |deps| of.file(&*deps.fs)).await.map_err(|e| chain(&e))?;
    let read = file.map(|text| iscsi::read(&text)).transpose();
    let config = match read {
        Ok(Some(config)) => config,
        // What its name says is all there is.
        other => {
            let error = other.err().unwrap_or_else(|| "there is no iscsi.json".to_owned());
            tracing::warn!(dir = %dir.path.display(), error, "the disk is let go by the name of its directory");
            iscsi::of_dirs(dir.iface(), dir.name()).ok_or(error)?
        }
    };
    if is_left {
        return Ok(());
    }
    // A disk that is dead may take minutes: others of its target do not wait for that.
    delete(host, &config).await?;
    let task = host.task.in_turn(host.tools.deps.persistent.target_turn(&config.iqn)).await;
    let host = &Host { task: &task, ..*host };
    host.task.effects.hit("detach").await;
    let all = host.found().await?;
    if all.iter().any(|found| found.dir != *dir && config.shares_session(found.dir.name())) {
        if let Some(delete) = config.delete_iface() {
            // It stays while a session has it.
            host.run(PROGRAM, delete).await?;
        }
        return Ok(());
    }
    let iqn = config.iqn.clone();
    let disks = host.look(move |deps| disks(&*deps.fs, &iqn)).await?;
    if let Some((lun, disk)) = disks.iter().find(|(lun, _)| *lun != config.lun) {
        // Of a session of this node's own, only disks of pods are scanned for.
        tracing::warn!(target = config.iqn, lun, disk, "the sessions stay: they have a disk that is no pod's");
        return Ok(());
    }
    log_out(host, &config).await?;
    let (iqn, portals) = (config.iqn.clone(), config.portals.clone());
    let left = host.look(move |deps| sessions(&*deps.fs, &iqn)).await.map_err(|e| chain(&e))?;
    if left.iter().any(|session| session.portals.iter().any(|p| portals.contains(p))) {
        // Another disk's own interface began it, which has gone before.
        log_out(host, &config.by_any_iface()).await?;
    }
    Ok(())
}

/// Ends the sessions. By an interface that is gone nothing can be asked for, not even what is not there: a login that failed took
/// it away, or a detachment that did not come to its end.
async fn log_out(host: &Host<'_>, config: &Config) -> Result<(), String> {
    let Some(mut refused) = refusal(host, config).await? else { return Ok(()) };
    if let Some(show) = config.show_iface()
        && host.run(PROGRAM, show).await?.code == Some(NO_IFACE)
    {
        match refusal(host, &config.clone().by_any_iface()).await? {
            None => return Ok(()),
            Some(end) => refused = end,
        }
    }
    Err(format!("iscsi: failed to detach disk: {}", said(&refused)))
}

/// Makes the calls that end the sessions. Answers with the first that failed.
async fn refusal(host: &Host<'_>, config: &Config) -> Result<Option<ProgramEnd>, String> {
    for call in config.logout() {
        let end = host.run(PROGRAM, call).await?;
        if !is(&end, &[NO_SESSION, NO_OBJECTS]) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Disks (`sda`) of a target that the kernel has, with their numbers.
fn disks(fs: &dyn HostFs, iqn: &str) -> Result<Vec<(i32, String)>, String> {
    let mut found = Vec::new();
    for Session { path, .. } in sessions(fs, iqn).map_err(|e| chain(&e))? {
        for target in named(fs, &path, "target").map_err(|e| chain(&e))? {
            let at = path.join(&target);
            for unit in named(fs, &at, target.trim_start_matches("target")).map_err(|e| chain(&e))? {
                let Some(lun) = unit.rsplit(':').next().and_then(|lun| lun.parse().ok()) else { continue };
                for disk in named(fs, &at.join(&unit).join("block"), "").map_err(|e| chain(&e))? {
                    found.push((lun, disk));
                }
            }
        }
    }
    Ok(found)
}

/// Takes the devices of a disk from the kernel.
async fn delete(host: &Host<'_>, config: &Config) -> Result<(), String> {
    let (iqn, lun) = (config.iqn.clone(), config.lun);
    let work = move |deps: &Deps| {
        let (fs, mut multipaths) = (&*deps.fs, Vec::new());
        let of_lun = disks(fs, &iqn)?.into_iter().filter(|(number, _)| *number == lun);
        let disks: Vec<String> = of_lun.map(|(_, disk)| disk).collect();
        for disk in &disks {
            multipaths.extend(multipath_of(fs, disk)?.filter(|m| !multipaths.contains(m)));
        }
        Ok::<_, String>((disks, multipaths))
    };
    let (disks, multipaths) = host.look(work).await?;
    for device in multipaths {
        if let Err(error) = host.flush(Some(device)).await {
            // Its paths are held by it, then.
            tracing::warn!(error, "a multipath device stays");
        }
    }
    host.delete(disks).await
}
