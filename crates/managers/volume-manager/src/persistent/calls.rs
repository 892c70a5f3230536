//! Calls to CSI drivers, and what they are told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::AskError;
use contract::objects::FetchToken;
use contract::plugin::RefreshCsiDriver;
use csi_api::CsiOutcome;
use csi_api::v1::volume_capability::{AccessMode as Access, AccessType, BlockVolume, MountVolume};
use csi_api::v1::{
    NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeServiceCapability, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability, node_service_capability,
};
use model::core::{Pod, Secret};
use model::k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use ports::api::ApiExt;
use ports::csi::{CsiError, CsiNode, CsiResult, DEADLINE};
use serde_json::json;
use volume_plan::attach::{Attachment, by_attachment};
use volume_plan::claim::Mode;
use volume_plan::csi::{self, DriverRules, access_mode};
use volume_plan::names::attachment_name;
use volume_plan::selinux::with_context;
use volume_plan::source::{Csi, Resolved};

use super::resolve::api;
use crate::abilities::Abilities;
use crate::deps::Tools;
use crate::measure;
use crate::registry::Part;
use crate::task::{TaskContext, fault_points};

/// What a call is on: the name of a volume, and its part.
pub(crate) type On<'a> = (&'a str, &'a Part);

/// A call that changes something: its name, and the fault points before and after it.
struct Verb(&'static str, [&'static str; 2]);

const STAGE: Verb = Verb("NodeStageVolume", fault_points("before stage", "after stage"));
const UNSTAGE: Verb = Verb("NodeUnstageVolume", fault_points("before unstage", "after unstage"));
const PUBLISH: Verb = Verb("NodePublishVolume", fault_points("before publish", "after publish"));
const EXPAND: Verb = Verb("NodeExpandVolume", fault_points("before expand", "after expand"));
const UNPUBLISH: Verb = Verb("NodeUnpublishVolume", fault_points("before unpublish", "after unpublish"));

/// How long the refusal of a pod waits for a driver that is asked again.
const REFRESH: Duration = Duration::from_secs(15);

/// A driver that is registered, and what it can do.
pub(crate) struct Driver<'a> {
    tools: &'a Tools,
    task: &'a TaskContext,
    csi: Arc<dyn CsiNode>,
    name: String,
    endpoint: PathBuf,
    can: Abilities,
    is_migrated: bool,
}

/// What a driver can do beyond the least.
pub(crate) type Ability = node_service_capability::rpc::Type;

/// Why a driver was of no help, and what that says of the volume.
#[derive(Debug)]
pub(crate) struct CallFailed {
    pub class: CsiOutcome,
    pub text: String,
}

impl CallFailed {
    /// The driver was not called.
    pub(crate) fn before(text: impl Into<String>) -> Self {
        Self { class: CsiOutcome::Transient, text: text.into() }
    }

    /// Nobody knows what is there.
    pub(crate) fn uncertain(text: impl Into<String>) -> Self {
        Self { class: CsiOutcome::Uncertain, text: text.into() }
    }
}

impl From<CsiError> for CallFailed {
    fn from(e: CsiError) -> Self {
        Self { class: e.outcome(), text: e.to_string() }
    }
}

impl<'a> Driver<'a> {
    /// Looks the driver of a volume up and asks what it can do.
    pub(crate) async fn of(tools: &'a Tools, task: &'a TaskContext, csi: &Csi) -> Result<Self, CallFailed> {
        Self::look_up(tools, task, (&csi.driver, csi.is_migrated)).await
    }

    /// The same by its name alone.
    pub(crate) async fn find(tools: &'a Tools, task: &'a TaskContext, name: &str) -> Result<Self, CallFailed> {
        Self::look_up(tools, task, (name, false)).await
    }

    async fn look_up(
        tools: &'a Tools,
        task: &'a TaskContext,
        (name, is_migrated): (&str, bool),
    ) -> Result<Self, CallFailed> {
        let (Some(row), Some(csi)) = (tools.drivers.get(&name.to_owned()), tools.deps.csi.clone()) else {
            return Err(CsiError::NotRegistered(name.to_owned()).into());
        };
        let volumes = &tools.deps.persistent;
        let can = match volumes.abilities(|said| said.since(name, &row)) {
            Some(can) => can,
            None => {
                let can = ask(&*csi, &row.endpoint, (name, is_migrated)).await?;
                volumes.abilities(|said| said.note(name, &row, &can));
                can
            }
        };
        Ok(Self { tools, task, csi, name: name.to_owned(), endpoint: row.endpoint.clone(), can, is_migrated })
    }

    pub(crate) fn can(&self, ability: Ability) -> bool {
        self.can.contains(&i32::from(ability))
    }

    pub(crate) async fn stage(&self, on: On<'_>, request: NodeStageVolumeRequest) -> Result<(), CallFailed> {
        Ok(self.call(on, &STAGE, self.csi.stage(&self.endpoint, request, DEADLINE)).await?)
    }

    pub(crate) async fn unstage(&self, on: On<'_>, request: NodeUnstageVolumeRequest) -> Result<(), CallFailed> {
        Ok(self.call(on, &UNSTAGE, self.csi.unstage(&self.endpoint, request, DEADLINE)).await?)
    }

    pub(crate) async fn publish(&self, on: On<'_>, request: NodePublishVolumeRequest) -> Result<(), CallFailed> {
        Ok(self.call(on, &PUBLISH, self.csi.publish(&self.endpoint, request, DEADLINE)).await?)
    }

    pub(crate) async fn unpublish(&self, on: On<'_>, request: NodeUnpublishVolumeRequest) -> Result<(), CallFailed> {
        Ok(self.call(on, &UNPUBLISH, self.csi.unpublish(&self.endpoint, request, DEADLINE)).await?)
    }

    pub(crate) async fn expand(&self, on: On<'_>, request: NodeExpandVolumeRequest) -> CsiResult<()> {
        self.call(on, &EXPAND, self.csi.expand(&self.endpoint, request, DEADLINE)).await.map(drop)
    }

    /// One call, which counts as under way meanwhile, between its fault points.
    async fn call<T>(
        &self,
        (volume, part): On<'_>,
        Verb(name, [before, after]): &Verb,
        call: impl Future<Output = CsiResult<T>>,
    ) -> CsiResult<T> {
        self.task.effects.hit(before).await;
        let doing = self.tools.deps.persistent.doing(volume, part, name, self.task.clock.now());
        let answer = measure::call((&self.name, self.is_migrated), name, call).await;
        drop(doing);
        if answer.is_err() {
            self.tools.deps.persistent.abilities(|said| said.forget(&self.name));
        }
        self.task.effects.hit(after).await;
        answer
    }

    /// How the volume is to be used. `context`: of SELinux, may be empty. `group`: told to drivers that give volumes to groups
    /// themselves.
    pub(crate) fn capability(
        &self,
        volume: &Resolved,
        csi: &Csi,
        context: &str,
        group: Option<u32>,
    ) -> VolumeCapability {
        let mode = access_mode(&volume.access_modes, self.can(Ability::SingleNodeMultiWriter));
        let mount = MountVolume {
            fs_type: csi.fs_type.clone(),
            mount_flags: with_context(&volume.mount_options, context),
            volume_mount_group: group.map(|g| g.to_string()).unwrap_or_default(),
        };
        let access_type = match volume.mode {
            Mode::Filesystem => AccessType::Mount(mount),
            Mode::Block => AccessType::Block(BlockVolume {}),
        };
        VolumeCapability { access_mode: Some(Access { mode: mode.into() }), access_type: Some(access_type) }
    }
}

/// Asks a driver what it can do.
async fn ask(csi: &dyn CsiNode, endpoint: &Path, driver: (&str, bool)) -> Result<Abilities, CallFailed> {
    let asked = measure::call(driver, "NodeGetCapabilities", csi.get_capabilities(endpoint, DEADLINE)).await;
    // The volume is as it was.
    let answer = asked.map_err(|e| CallFailed::before(e.to_string()))?;
    let code = |c: NodeServiceCapability| c.r#type.map(|node_service_capability::Type::Rpc(rpc)| rpc.r#type);
    Ok(Arc::new(answer.capabilities.into_iter().filter_map(code).collect()))
}

/// What the API server says of a driver. PluginManager follows that; what it has not heard is asked for.
pub(crate) async fn rules(tools: &Tools, driver: &str) -> Result<DriverRules, String> {
    if let Some(known) = tools.drivers.get(&driver.to_owned()).and_then(|row| row.object.clone()) {
        return Ok(csi::driver_rules(Some(&known)));
    }
    match api(tools)?.get::<CSIDriver>(None, driver).await {
        Ok(found) => Ok(csi::driver_rules(Some(&found))),
        Err(e) if e.is_not_found() => Ok(csi::driver_rules(None)),
        Err(e) => Err(format!("CSIDriver {driver} cannot be fetched: {e}")),
    }
}

/// What the API server says of the attachment of a volume to this node.
pub(crate) async fn attachment(tools: &Tools, csi: &Csi) -> Result<Attachment, String> {
    let name = attachment_name(&csi.handle, &csi.driver, &tools.config.node_name);
    match api(tools)?.get::<VolumeAttachment>(None, &name).await {
        Ok(found) => Ok(by_attachment(Some(&found))),
        Err(e) if e.is_not_found() => Ok(by_attachment(None)),
        Err(e) => Err(format!("VolumeAttachment {name} cannot be fetched: {e}")),
    }
}

/// Has a driver say again how many volumes the node may have. Who waits for it may not wait for long: it goes on all the same.
pub(crate) async fn refresh(tools: &Tools, task: &TaskContext, driver: &str) {
    let ask = tools.crew.call(RefreshCsiDriver { driver: driver.to_owned() });
    let failed = tokio::select! {
        biased;
        done = ask => done.err().map(|e| e.message),
        () = task.clock.sleep(REFRESH) => Some("it takes its time".to_owned()),
    };
    if let Some(error) = failed {
        tracing::warn!(driver, error, "the API server does not hear yet how many volumes the node may have");
    }
}

/// Content of a secret for a driver.
pub(crate) async fn secret(
    tools: &Tools,
    of: Option<&(String, String)>,
) -> Result<BTreeMap<String, String>, CallFailed> {
    let Some((namespace, name)) = of else { return Ok(BTreeMap::new()) };
    let failed = |e: String| CallFailed::before(format!("fetching secret {namespace}/{name} failed: {e}"));
    let found = api(tools).map_err(&failed)?.get::<Secret>(Some(namespace), name).await;
    let data = found.map_err(|e| failed(e.to_string()))?.data.unwrap_or_default();
    Ok(data.into_iter().map(|(k, v)| (k, String::from_utf8_lossy(&v.0).into_owned())).collect())
}

/// Tokens of the pod's service account, as drivers read them; `None`: the driver wants none.
pub(crate) async fn tokens(tools: &Tools, pod: &Arc<Pod>, rules: &DriverRules) -> Result<Option<String>, CallFailed> {
    if rules.tokens.is_empty() {
        return Ok(None);
    }
    let mut out = serde_json::Map::new();
    for (audience, seconds) in &rules.tokens {
        let expiration_s = seconds.unwrap_or(3600);
        let ask = FetchToken { pod: pod.clone(), audience: audience.clone(), expiration_s };
        let token = match tools.crew.ask(ask).await {
            Ok(Ok(token)) => token,
            Ok(Err(e)) => return Err(CallFailed::before(e.to_string())),
            Err(e @ AskError::NotDelivered) => return Err(CallFailed::before(format!("no object store: {e}"))),
            Err(e) => return Err(CallFailed::before(format!("object store: {e}"))),
        };
        let until = token.expires_at.to_api();
        out.insert(audience.clone(), json!({ "token": token.text, "expirationTimestamp": until }));
    }
    Ok(Some(serde_json::Value::Object(out).to_string()))
}
