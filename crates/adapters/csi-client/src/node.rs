//! The Node service of a driver.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use csi_api::v1;
use ports::csi::{CsiError, CsiNode, CsiResult};

use crate::CsiClient;
use crate::client::{CALLS, Failure, MAX_MESSAGE};
use crate::stubs::csi::node_client::NodeClient;

/// One call of the Node service.
macro_rules! call {
    ($client:expr, $driver:expr, $deadline:expr, $method:ident($request:expr)) => {{
        let request = $request;
        let call = $client.call($driver, $deadline, |channel, origin| async move {
            let node = NodeClient::with_origin(channel, origin);
            node.max_decoding_message_size(MAX_MESSAGE).$method(request).await
        });
        call.await.map_err(CsiError::from)
    }};
}

impl From<Failure> for CsiError {
    fn from(e: Failure) -> Self {
        match e {
            Failure::NoPlace => Self::Busy(format!("{CALLS} calls to the driver are under way already")),
            Failure::Status(code, message) => Self::Status { code, message },
        }
    }
}

#[async_trait]
impl CsiNode for CsiClient {
    async fn get_info(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetInfoResponse> {
        let info = call!(self, driver, deadline, node_get_info(v1::NodeGetInfoRequest {}))?;
        if info.node_id.is_empty() {
            return Err(CsiError::Nonsense(
                "error adding CSI driver node info: driverNodeID must not be empty".to_owned(),
            ));
        }
        Ok(info)
    }

    async fn get_capabilities(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetCapabilitiesResponse> {
        call!(self, driver, deadline, node_get_capabilities(v1::NodeGetCapabilitiesRequest {}))
    }

    async fn stage(&self, driver: &Path, request: v1::NodeStageVolumeRequest, deadline: Duration) -> CsiResult<()> {
        call!(self, driver, deadline, node_stage_volume(request)).map(drop)
    }

    async fn unstage(&self, driver: &Path, request: v1::NodeUnstageVolumeRequest, deadline: Duration) -> CsiResult<()> {
        call!(self, driver, deadline, node_unstage_volume(request)).map(drop)
    }

    async fn publish(&self, driver: &Path, request: v1::NodePublishVolumeRequest, deadline: Duration) -> CsiResult<()> {
        call!(self, driver, deadline, node_publish_volume(request)).map(drop)
    }

    async fn unpublish(
        &self,
        driver: &Path,
        request: v1::NodeUnpublishVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<()> {
        call!(self, driver, deadline, node_unpublish_volume(request)).map(drop)
    }

    async fn get_volume_stats(
        &self,
        driver: &Path,
        request: v1::NodeGetVolumeStatsRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeGetVolumeStatsResponse> {
        let stats = call!(self, driver, deadline, node_get_volume_stats(request))?;
        let negative = |usage: &v1::VolumeUsage| usage.available < 0 || usage.total < 0 || usage.used < 0;
        if stats.usage.iter().any(negative) {
            return Err(CsiError::Nonsense("the usage of the volume is negative".to_owned()));
        }
        Ok(stats)
    }

    async fn expand(
        &self,
        driver: &Path,
        request: v1::NodeExpandVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeExpandVolumeResponse> {
        call!(self, driver, deadline, node_expand_volume(request))
    }
}
