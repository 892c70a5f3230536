//! A CSI driver on the disk in memory that notes what it is asked, and lies when it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use csi_api::v1::node_service_capability::{Rpc, Type};
use csi_api::v1::volume_capability::AccessType;
use csi_api::v1::{self, NodeServiceCapability};
use fakes::MemFs;
use ports::csi::{CsiError, CsiNode, CsiResult};
use ports::grpc::Code;
use ports::host::{FileKind, HostFs, Mounter, TMPFS_MAGIC};

/// What a driver does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Nothing, and says so.
    Refuse(Code),
    /// Its work, and an error.
    LoseReply(Code),
    /// Nothing, and says that it was done.
    Pretend,
    /// It never answers, after its work.
    Hang,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<String>,
    /// How often it was asked what it can do.
    asked: usize,
    lies: BTreeMap<&'static str, Vec<Lie>>,
    abilities: Vec<Ability>,
    /// (driver, volume) that are staged, and where.
    staged: BTreeMap<(PathBuf, String), String>,
    published: BTreeSet<(PathBuf, String, String)>,
    /// What a driver may never see.
    wrong: Vec<String>,
    last_publish: Option<v1::NodePublishVolumeRequest>,
    last_stage: Option<v1::NodeStageVolumeRequest>,
    last_expand: Option<v1::NodeExpandVolumeRequest>,
}

#[derive(Clone, Debug)]
pub(super) struct FakeCsi {
    state: Arc<Mutex<State>>,
    disk: MemFs,
}

impl FakeCsi {
    /// A driver that stages.
    pub(super) fn on(disk: &MemFs) -> Self {
        let csi = Self { state: Arc::default(), disk: disk.clone() };
        csi.can(&[Ability::StageUnstageVolume]);
        csi
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn can(&self, abilities: &[Ability]) {
        self.state().abilities = abilities.to_vec();
    }

    /// The next calls of this name, in turn.
    pub(super) fn lie(&self, call: &'static str, lies: &[Lie]) {
        self.state().lies.insert(call, lies.to_vec());
    }

    /// Calls since the last look.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    /// How often it was asked what it can do, since the last look.
    pub(super) fn asked(&self) -> usize {
        std::mem::take(&mut self.state().asked)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.state().wrong.clone()
    }

    pub(super) fn last_publish(&self) -> v1::NodePublishVolumeRequest {
        self.state().last_publish.clone().expect("something was published")
    }

    pub(super) fn last_stage(&self) -> v1::NodeStageVolumeRequest {
        self.state().last_stage.clone().expect("something was staged")
    }

    pub(super) fn last_expand(&self) -> v1::NodeExpandVolumeRequest {
        self.state().last_expand.clone().expect("something was to grow")
    }

    /// Nothing is staged or published.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.staged.is_empty() && state.published.is_empty()
    }

    async fn call(&self, name: &'static str, volume: &str, work: impl FnOnce(&mut State, &MemFs)) -> CsiResult<()> {
        let lie = {
            let mut state = self.state();
            state.calls.push(format!("{name} {volume}"));
            let lies = state.lies.entry(name).or_default();
            let lie = (!lies.is_empty()).then(|| lies.remove(0));
            if !matches!(lie, Some(Lie::Refuse(_) | Lie::Pretend)) {
                work(&mut state, &self.disk);
            }
            lie
        };
        // As over a socket: not at once.
        tokio::time::sleep(Duration::from_millis(5)).await;
        match lie {
            None | Some(Lie::Pretend) => Ok(()),
            Some(Lie::Refuse(code) | Lie::LoseReply(code)) => Err(CsiError::status(code, "because")),
            Some(Lie::Hang) => std::future::pending().await,
        }
    }
}

fn is_raw(capability: Option<&v1::VolumeCapability>) -> bool {
    matches!(capability.and_then(|c| c.access_type.as_ref()), Some(AccessType::Block(_)))
}

/// As tmpfs: what is in it goes with the mount, and comes to nobody else.
fn mount(disk: &MemFs, path: &str) {
    disk.create_dir(Path::new(path), 0o755).unwrap();
    if !disk.is_mount_point(Path::new(path)).unwrap() {
        disk.mount_as(Path::new(path), TMPFS_MAGIC);
    }
}

#[async_trait]
impl CsiNode for FakeCsi {
    async fn get_info(&self, _: &Path, _: Duration) -> CsiResult<v1::NodeGetInfoResponse> {
        Err(CsiError::status(Code::Unimplemented, "not asked here"))
    }

    async fn get_capabilities(&self, _: &Path, _: Duration) -> CsiResult<v1::NodeGetCapabilitiesResponse> {
        let of = |a: &Ability| NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: i32::from(*a) })) };
        let mut state = self.state();
        state.asked += 1;
        let capabilities = state.abilities.iter().map(of).collect();
        Ok(v1::NodeGetCapabilitiesResponse { capabilities })
    }

    async fn stage(&self, driver: &Path, request: v1::NodeStageVolumeRequest, _: Duration) -> CsiResult<()> {
        let (id, at) = (request.volume_id.clone(), request.staging_target_path.clone());
        self.state().last_stage = Some(request);
        let raw = self.state().last_stage.as_ref().is_some_and(|r| is_raw(r.volume_capability.as_ref()));
        self.call("stage", &id.clone(), |state, disk| {
            if raw {
                // As drivers do that note something there.
                disk.write_file(&Path::new(&at).join("note"), b"", 0o644).unwrap();
            } else {
                mount(disk, &at);
            }
            state.staged.insert((driver.to_owned(), id), at);
        })
        .await
    }

    async fn unstage(&self, driver: &Path, request: v1::NodeUnstageVolumeRequest, _: Duration) -> CsiResult<()> {
        let (id, at) = (request.volume_id.clone(), request.staging_target_path);
        self.call("unstage", &id.clone(), |state, disk| {
            let used = state.published.iter().any(|(d, v, _)| d == driver && *v == id);
            if used {
                state.wrong.push(format!("unstage of {id}, which a pod has"));
            }
            disk.unmount(Path::new(&at)).unwrap();
            state.staged.remove(&(driver.to_owned(), id));
        })
        .await
    }

    async fn publish(&self, driver: &Path, request: v1::NodePublishVolumeRequest, _: Duration) -> CsiResult<()> {
        let (id, at, from) =
            (request.volume_id.clone(), request.target_path.clone(), request.staging_target_path.clone());
        let raw = is_raw(request.volume_capability.as_ref());
        self.state().last_publish = Some(request);
        self.call("publish", &id.clone(), |state, disk| {
            if state.abilities.contains(&Ability::StageUnstageVolume)
                && !from.is_empty()
                && !state.staged.contains_key(&(driver.to_owned(), id.clone()))
            {
                state.wrong.push(format!("publish of {id}, which is not staged"));
            }
            if raw {
                if disk.stat_link(Path::new(&at)).unwrap().is_none() {
                    disk.special(Path::new(&at), FileKind::BlockDevice);
                }
            } else {
                mount(disk, &at);
                disk.write_file(&Path::new(&at).join("data"), b"of the user", 0o644).unwrap();
            }
            state.published.insert((driver.to_owned(), id, at));
        })
        .await
    }

    async fn unpublish(&self, driver: &Path, request: v1::NodeUnpublishVolumeRequest, _: Duration) -> CsiResult<()> {
        let (id, at) = (request.volume_id.clone(), request.target_path);
        self.call("unpublish", &id.clone(), |state, disk| {
            let at_path = Path::new(&at);
            let mut parts = at_path.iter().rev().map(|part| part.to_str().unwrap());
            let (uid, name) = (parts.next().unwrap(), parts.next().unwrap());
            if disk.held_devices().iter().any(|held| held.ends_with(format!("{name}/dev/{uid}"))) {
                state.wrong.push(format!("unpublish of {id}, which is held open"));
            }
            disk.unmount(at_path).unwrap();
            if disk.stat_link(at_path).unwrap().is_some_and(|s| s.kind == FileKind::BlockDevice) {
                disk.remove_file(at_path).unwrap();
            } else {
                disk.remove_empty_dir(at_path).unwrap();
            }
            state.published.remove(&(driver.to_owned(), id, at));
        })
        .await
    }

    async fn get_volume_stats(
        &self,
        _: &Path,
        _: v1::NodeGetVolumeStatsRequest,
        _: Duration,
    ) -> CsiResult<v1::NodeGetVolumeStatsResponse> {
        Err(CsiError::status(Code::Unimplemented, "not asked here"))
    }

    async fn expand(
        &self,
        _: &Path,
        request: v1::NodeExpandVolumeRequest,
        _: Duration,
    ) -> CsiResult<v1::NodeExpandVolumeResponse> {
        let id = request.volume_id.clone();
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        self.state().last_expand = Some(request);
        self.call("expand", &id, |_, _| ()).await.map(|()| v1::NodeExpandVolumeResponse { capacity_bytes })
    }
}
