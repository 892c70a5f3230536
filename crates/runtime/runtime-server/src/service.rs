//! CRI `RuntimeService`: words of the protocol to calls of this crate and back.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use futures::{Stream, StreamExt};
use pod_supervisor::wire::Request as Ask;
use tonic::{Request, Response, Status};

use crate::blocking::Class;
use crate::cri::runtime_service_server::RuntimeService;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::{container, exec, sandbox, starts, stats, status, supervisor};

mod images;
mod info;
mod lists;
mod resources;
mod sessions;

pub(crate) use images::ImageApi;

/// What answers.
pub(crate) struct RuntimeApi(pub(crate) Arc<Runtime>);

type Answer<T> = Result<Response<T>, Status>;
type NoStream<T> = tokio_stream::Empty<Result<T, Status>>;
type EventStream = Pin<Box<dyn Stream<Item = Result<v1::ContainerEventResponse, Status>> + Send>>;

/// What this runtime calls itself.
const NAME: &str = "bosun";
/// Version of the kubelet's API towards runtimes: what all answer.
const KUBE_API_VERSION: &str = "0.1.0";

fn missing(what: &str) -> Status {
    Status::invalid_argument(format!("{what} is missing"))
}

fn unimplemented<T>(what: &str) -> Answer<T> {
    Err(Status::unimplemented(format!("{what} is not implemented by bosun's runtime")))
}

#[tonic::async_trait]
impl RuntimeService for RuntimeApi {
    async fn version(&self, _: Request<v1::VersionRequest>) -> Answer<v1::VersionResponse> {
        Ok(Response::new(v1::VersionResponse {
            version: KUBE_API_VERSION.into(),
            runtime_name: NAME.into(),
            runtime_version: env!("CARGO_PKG_VERSION").into(),
            runtime_api_version: "v1".into(),
        }))
    }

    async fn run_pod_sandbox(&self, r: Request<v1::RunPodSandboxRequest>) -> Answer<v1::RunPodSandboxResponse> {
        let r = r.into_inner();
        let config = r.config.ok_or_else(|| missing("config"))?;
        // What was begun is ended though the caller may go away: only so is every step undone or done.
        let rt = Arc::clone(&self.0);
        let made = tokio::spawn(async move { sandbox::run(&rt, config, r.runtime_handler).await });
        let pod_sandbox_id = made.await.map_err(|e| Status::internal(e.to_string()))??;
        Ok(Response::new(v1::RunPodSandboxResponse { pod_sandbox_id }))
    }

    async fn stop_pod_sandbox(&self, r: Request<v1::StopPodSandboxRequest>) -> Answer<v1::StopPodSandboxResponse> {
        sandbox::stop(&self.0, &r.into_inner().pod_sandbox_id).await?;
        Ok(Response::new(v1::StopPodSandboxResponse {}))
    }

    async fn remove_pod_sandbox(
        &self,
        r: Request<v1::RemovePodSandboxRequest>,
    ) -> Answer<v1::RemovePodSandboxResponse> {
        sandbox::remove(&self.0, &r.into_inner().pod_sandbox_id).await?;
        Ok(Response::new(v1::RemovePodSandboxResponse {}))
    }

    async fn pod_sandbox_status(
        &self,
        r: Request<v1::PodSandboxStatusRequest>,
    ) -> Answer<v1::PodSandboxStatusResponse> {
        let r = r.into_inner();
        let record = self.0.pod(&r.pod_sandbox_id)?.record();
        let info = if r.verbose { info::sandbox(&self.0, &record) } else { Default::default() };
        let status = Some(status::sandbox(&record));
        Ok(Response::new(v1::PodSandboxStatusResponse { status, info, ..v1::PodSandboxStatusResponse::default() }))
    }

    async fn list_pod_sandbox(&self, r: Request<v1::ListPodSandboxRequest>) -> Answer<v1::ListPodSandboxResponse> {
        let items = lists::sandboxes(&self.0, &r.into_inner().filter.unwrap_or_default());
        Ok(Response::new(v1::ListPodSandboxResponse { items }))
    }

    async fn create_container(&self, r: Request<v1::CreateContainerRequest>) -> Answer<v1::CreateContainerResponse> {
        let r = r.into_inner();
        let config = r.config.ok_or_else(|| missing("config"))?;
        let rt = Arc::clone(&self.0);
        let made = tokio::spawn(async move { container::create(&rt, &r.pod_sandbox_id, config).await });
        let container_id = made.await.map_err(|e| Status::internal(e.to_string()))??;
        Ok(Response::new(v1::CreateContainerResponse { container_id }))
    }

    async fn start_container(&self, r: Request<v1::StartContainerRequest>) -> Answer<v1::StartContainerResponse> {
        let rt = Arc::clone(&self.0);
        let started = tokio::spawn(async move { starts::start(&rt, &r.into_inner().container_id).await });
        started.await.map_err(|e| Status::internal(e.to_string()))??;
        Ok(Response::new(v1::StartContainerResponse {}))
    }

    async fn stop_container(&self, r: Request<v1::StopContainerRequest>) -> Answer<v1::StopContainerResponse> {
        let r = r.into_inner();
        let grace = Duration::from_secs(u64::try_from(r.timeout).unwrap_or_default());
        container::stop(&self.0, &r.container_id, grace).await?;
        Ok(Response::new(v1::StopContainerResponse {}))
    }

    async fn remove_container(&self, r: Request<v1::RemoveContainerRequest>) -> Answer<v1::RemoveContainerResponse> {
        container::remove(&self.0, &r.into_inner().container_id).await?;
        Ok(Response::new(v1::RemoveContainerResponse {}))
    }

    async fn list_containers(&self, r: Request<v1::ListContainersRequest>) -> Answer<v1::ListContainersResponse> {
        let containers = lists::containers(&self.0, &r.into_inner().filter.unwrap_or_default());
        Ok(Response::new(v1::ListContainersResponse { containers }))
    }

    async fn container_status(&self, r: Request<v1::ContainerStatusRequest>) -> Answer<v1::ContainerStatusResponse> {
        let r = r.into_inner();
        let record = self.0.container(&r.container_id)?.record();
        let info = if r.verbose { info::container(&self.0, &record).await? } else { Default::default() };
        Ok(Response::new(v1::ContainerStatusResponse { status: Some(status::container(&record)), info }))
    }

    async fn update_container_resources(
        &self,
        r: Request<v1::UpdateContainerResourcesRequest>,
    ) -> Answer<v1::UpdateContainerResourcesResponse> {
        resources::update(&self.0, r.into_inner()).await?;
        Ok(Response::new(v1::UpdateContainerResourcesResponse {}))
    }

    async fn reopen_container_log(
        &self,
        r: Request<v1::ReopenContainerLogRequest>,
    ) -> Answer<v1::ReopenContainerLogResponse> {
        let (container, record) = exec::running(&self.0, &r.into_inner().container_id)?;
        let reopen = Ask::Reopen { id: record.id.clone() };
        let asked = supervisor::ask(&self.0.socket(&container.pod), &record.id, &reopen).await;
        asked.map_err(RuntimeError::from)?;
        Ok(Response::new(v1::ReopenContainerLogResponse {}))
    }

    async fn exec_sync(&self, r: Request<v1::ExecSyncRequest>) -> Answer<v1::ExecSyncResponse> {
        Ok(Response::new(exec::sync(&self.0, r.into_inner()).await?))
    }

    async fn exec(&self, r: Request<v1::ExecRequest>) -> Answer<v1::ExecResponse> {
        Ok(Response::new(v1::ExecResponse { url: sessions::exec(&self.0, r.into_inner())? }))
    }

    async fn attach(&self, r: Request<v1::AttachRequest>) -> Answer<v1::AttachResponse> {
        Ok(Response::new(v1::AttachResponse { url: sessions::attach(&self.0, r.into_inner())? }))
    }

    async fn port_forward(&self, r: Request<v1::PortForwardRequest>) -> Answer<v1::PortForwardResponse> {
        Ok(Response::new(v1::PortForwardResponse { url: sessions::port_forward(&self.0, r.into_inner())? }))
    }

    async fn container_stats(&self, r: Request<v1::ContainerStatsRequest>) -> Answer<v1::ContainerStatsResponse> {
        let stats = lists::container_stats(&self.0, &r.into_inner().container_id).await?;
        Ok(Response::new(v1::ContainerStatsResponse { stats: Some(stats) }))
    }

    async fn list_container_stats(
        &self,
        r: Request<v1::ListContainerStatsRequest>,
    ) -> Answer<v1::ListContainerStatsResponse> {
        let stats = lists::all_container_stats(&self.0, r.into_inner().filter.unwrap_or_default()).await?;
        Ok(Response::new(v1::ListContainerStatsResponse { stats }))
    }

    async fn pod_sandbox_stats(&self, r: Request<v1::PodSandboxStatsRequest>) -> Answer<v1::PodSandboxStatsResponse> {
        let record = self.0.pod(&r.into_inner().pod_sandbox_id)?.record();
        let rt = Arc::clone(&self.0);
        let stats = self.0.blocking.run(Class::Stats, move || Ok(stats::pod(&rt, &record))).await?;
        Ok(Response::new(v1::PodSandboxStatsResponse { stats: Some(stats) }))
    }

    async fn list_pod_sandbox_stats(
        &self,
        r: Request<v1::ListPodSandboxStatsRequest>,
    ) -> Answer<v1::ListPodSandboxStatsResponse> {
        let stats = lists::all_pod_stats(&self.0, r.into_inner().filter.unwrap_or_default()).await?;
        Ok(Response::new(v1::ListPodSandboxStatsResponse { stats }))
    }

    async fn update_runtime_config(
        &self,
        _: Request<v1::UpdateRuntimeConfigRequest>,
    ) -> Answer<v1::UpdateRuntimeConfigResponse> {
        // Pods' addresses are the network plugins' business.
        Ok(Response::new(v1::UpdateRuntimeConfigResponse {}))
    }

    async fn status(&self, r: Request<v1::StatusRequest>) -> Answer<v1::StatusResponse> {
        let info = if r.into_inner().verbose { info::runtime(&self.0) } else { Default::default() };
        Ok(Response::new(v1::StatusResponse { info, ..lists::status(&self.0).await }))
    }

    async fn checkpoint_container(
        &self,
        _: Request<v1::CheckpointContainerRequest>,
    ) -> Answer<v1::CheckpointContainerResponse> {
        unimplemented("CheckpointContainer (it needs CRIU, which this runtime does not drive)")
    }

    type GetContainerEventsStream = EventStream;

    async fn get_container_events(&self, _: Request<v1::GetEventsRequest>) -> Answer<EventStream> {
        let mut ending = self.0.ending.subscribe();
        let ending = async move { ending.wait_for(|ending| *ending).await.map(drop) };
        Ok(Response::new(Box::pin(self.0.events.listen().take_until(Box::pin(ending)))))
    }

    async fn list_metric_descriptors(
        &self,
        _: Request<v1::ListMetricDescriptorsRequest>,
    ) -> Answer<v1::ListMetricDescriptorsResponse> {
        unimplemented("ListMetricDescriptors")
    }

    async fn list_pod_sandbox_metrics(
        &self,
        _: Request<v1::ListPodSandboxMetricsRequest>,
    ) -> Answer<v1::ListPodSandboxMetricsResponse> {
        unimplemented("ListPodSandboxMetrics")
    }

    async fn runtime_config(&self, _: Request<v1::RuntimeConfigRequest>) -> Answer<v1::RuntimeConfigResponse> {
        let driver = if self.0.options.systemd_cgroup { v1::CgroupDriver::Systemd } else { v1::CgroupDriver::Cgroupfs };
        let linux = Some(v1::LinuxRuntimeConfiguration { cgroup_driver: driver.into() });
        Ok(Response::new(v1::RuntimeConfigResponse { linux }))
    }

    async fn update_pod_sandbox_resources(
        &self,
        r: Request<v1::UpdatePodSandboxResourcesRequest>,
    ) -> Answer<v1::UpdatePodSandboxResourcesResponse> {
        // The pod's cgroup is its kubelet's, and nothing here depends on what it holds.
        self.0.pod(&r.into_inner().pod_sandbox_id)?;
        Ok(Response::new(v1::UpdatePodSandboxResourcesResponse {}))
    }

    type StreamPodSandboxesStream = NoStream<v1::StreamPodSandboxesResponse>;

    async fn stream_pod_sandboxes(
        &self,
        _: Request<v1::StreamPodSandboxesRequest>,
    ) -> Answer<Self::StreamPodSandboxesStream> {
        unimplemented("StreamPodSandboxes")
    }

    type StreamContainersStream = NoStream<v1::StreamContainersResponse>;

    async fn stream_containers(&self, _: Request<v1::StreamContainersRequest>) -> Answer<Self::StreamContainersStream> {
        unimplemented("StreamContainers")
    }

    type StreamContainerStatsStream = NoStream<v1::StreamContainerStatsResponse>;

    async fn stream_container_stats(
        &self,
        _: Request<v1::StreamContainerStatsRequest>,
    ) -> Answer<Self::StreamContainerStatsStream> {
        unimplemented("StreamContainerStats")
    }

    type StreamPodSandboxStatsStream = NoStream<v1::StreamPodSandboxStatsResponse>;

    async fn stream_pod_sandbox_stats(
        &self,
        _: Request<v1::StreamPodSandboxStatsRequest>,
    ) -> Answer<Self::StreamPodSandboxStatsStream> {
        unimplemented("StreamPodSandboxStats")
    }

    type StreamPodSandboxMetricsStream = NoStream<v1::StreamPodSandboxMetricsResponse>;

    async fn stream_pod_sandbox_metrics(
        &self,
        _: Request<v1::StreamPodSandboxMetricsRequest>,
    ) -> Answer<Self::StreamPodSandboxMetricsStream> {
        unimplemented("StreamPodSandboxMetrics")
    }
}
