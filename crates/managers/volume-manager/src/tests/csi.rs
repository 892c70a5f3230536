//! A CSI driver on the disk in memory that notes what it is asked, and lies when it is told to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use csi_api::v1::node_service_capability::{Rpc, Type};
use csi_api::v1::{self, NodeServiceCapability};
use fakes::{FakeVolumes, MemFs, VolumeCall};
use ports::csi::{CsiError, CsiNode, CsiResult};
use ports::grpc::Code;

/// What a driver does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Nothing, and says so.
    Refuse(Code),
    /// Its work, and an error.
    LoseReply(Code),
    /// Its work twice, and an error.
    Twice(Code),
    /// An error, and its work when it is called for the same volume again: until then the first call is under way.
    Late(Code),
    /// Nothing, and says that it was done.
    Pretend,
    /// It does not answer, after its work, until whoever asked gives up.
    Hang,
    /// Its work, and an answer only after so many seconds.
    Slow(u64),
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<String>,
    /// How often it was asked what it can do.
    asked: usize,
    lies: BTreeMap<&'static str, Vec<Lie>>,
    abilities: Vec<Ability>,
    volumes: FakeVolumes,
    /// Work that is still under way, by driver.
    late: Vec<(PathBuf, VolumeCall)>,
    last_publish: Option<v1::NodePublishVolumeRequest>,
    last_stage: Option<v1::NodeStageVolumeRequest>,
    last_expand: Option<v1::NodeExpandVolumeRequest>,
}

impl State {
    /// Ends what is under way for a volume.
    fn end_late(&mut self, driver: &Path, volume: &str) {
        let is_of = |(of, call): &mut (PathBuf, VolumeCall)| of == driver && call.volume() == volume;
        for (of, call) in self.late.extract_if(.., is_of) {
            self.volumes.carry_out(&of, &call).unwrap();
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct FakeCsi(Arc<Mutex<State>>);

impl FakeCsi {
    /// A driver that stages.
    pub(super) fn on(disk: &MemFs) -> Self {
        let csi = Self(Arc::new(Mutex::new(State { volumes: FakeVolumes::on(disk), ..State::default() })));
        csi.can(&[Ability::StageUnstageVolume]);
        csi
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn can(&self, abilities: &[Ability]) {
        let mut state = self.state();
        state.abilities = abilities.to_vec();
        state.volumes.set_staging(abilities.contains(&Ability::StageUnstageVolume));
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
        self.state().volumes.wrong().to_vec()
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

    /// Nothing is staged or published, or about to be.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.volumes.staged().is_empty() && state.volumes.published().is_empty() && state.late.is_empty()
    }

    async fn call(&self, name: &'static str, driver: &Path, call: VolumeCall) -> CsiResult<()> {
        let lie = {
            let mut state = self.state();
            state.calls.push(format!("{name} {}", call.volume()));
            state.end_late(driver, call.volume());
            let lies = state.lies.entry(name).or_default();
            let lie = (!lies.is_empty()).then(|| lies.remove(0));
            let times = match lie {
                Some(Lie::Refuse(_) | Lie::Pretend | Lie::Late(_)) => 0,
                None | Some(Lie::LoseReply(_) | Lie::Hang | Lie::Slow(_)) => 1,
                Some(Lie::Twice(_)) => 2,
            };
            (0..times).for_each(|_| state.volumes.carry_out(driver, &call).unwrap());
            if matches!(lie, Some(Lie::Late(_))) {
                state.late.push((driver.to_owned(), call));
            }
            lie
        };
        // As over a socket: not at once.
        tokio::time::sleep(Duration::from_millis(5)).await;
        match lie {
            None | Some(Lie::Pretend) => Ok(()),
            Some(Lie::Refuse(code) | Lie::LoseReply(code) | Lie::Twice(code) | Lie::Late(code)) => {
                Err(CsiError::status(code, "because"))
            }
            Some(Lie::Hang) => {
                tokio::time::sleep(Duration::from_secs(150)).await;
                Err(CsiError::status(Code::DeadlineExceeded, "context deadline exceeded"))
            }
            Some(Lie::Slow(seconds)) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(())
            }
        }
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
        self.state().last_stage = Some(request.clone());
        self.call("stage", driver, VolumeCall::Stage(request)).await
    }

    async fn unstage(&self, driver: &Path, request: v1::NodeUnstageVolumeRequest, _: Duration) -> CsiResult<()> {
        self.call("unstage", driver, VolumeCall::Unstage(request)).await
    }

    async fn publish(&self, driver: &Path, request: v1::NodePublishVolumeRequest, _: Duration) -> CsiResult<()> {
        self.state().last_publish = Some(request.clone());
        self.call("publish", driver, VolumeCall::Publish(request)).await
    }

    async fn unpublish(&self, driver: &Path, request: v1::NodeUnpublishVolumeRequest, _: Duration) -> CsiResult<()> {
        self.call("unpublish", driver, VolumeCall::Unpublish(request)).await
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
        driver: &Path,
        request: v1::NodeExpandVolumeRequest,
        _: Duration,
    ) -> CsiResult<v1::NodeExpandVolumeResponse> {
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        self.state().last_expand = Some(request.clone());
        let done = self.call("expand", driver, VolumeCall::Expand(request)).await;
        done.map(|()| v1::NodeExpandVolumeResponse { capacity_bytes })
    }
}
