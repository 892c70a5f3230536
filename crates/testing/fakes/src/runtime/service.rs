//! CRI `RuntimeService`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use cri_api::v1;
use futures::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;
use tonic::{Request, Response, Status, async_trait};

use super::state::{FakeContainer, FakeSandbox, pod_of};
use super::{Inner, Mutation, lock};
use crate::stubs::cri::runtime_service_server::RuntimeService;

pub(super) struct RuntimeApi(pub(super) Arc<Inner>);

/// Stream type of calls that are not implemented.
pub(super) type NoStream<T> = tokio_stream::Empty<Result<T, Status>>;

pub(super) fn unknown(method: &str) -> Status {
    Status::unimplemented(format!("unknown method {method} for service runtime.v1.RuntimeService"))
}

fn labelled(labels: &BTreeMap<String, String>, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(k, v)| labels.get(k) == Some(v))
}

fn sandbox_matches(s: &FakeSandbox, f: &v1::PodSandboxFilter) -> bool {
    (f.id.is_empty() || s.id == f.id)
        && f.state.as_ref().is_none_or(|state| state.state == i32::from(s.state()))
        && labelled(&s.config.labels, &f.label_selector)
}

fn container_matches(c: &FakeContainer, f: &v1::ContainerFilter) -> bool {
    (f.id.is_empty() || c.id == f.id)
        && (f.pod_sandbox_id.is_empty() || c.sandbox == f.pod_sandbox_id)
        && f.state.as_ref().is_none_or(|state| state.state == i32::from(c.state))
        && labelled(&c.config.labels, &f.label_selector)
}

fn pod_subject(config: Option<&v1::PodSandboxConfig>) -> String {
    config.map(pod_of).unwrap_or_default()
}

impl Inner {
    fn status(&self) -> v1::StatusResponse {
        let script = lock(&self.script);
        let condition = |kind: &str, ok: bool, reason: &str, message: &str| v1::RuntimeCondition {
            r#type: kind.to_owned(),
            status: ok,
            reason: if ok { String::new() } else { reason.to_owned() },
            message: if ok { String::new() } else { message.to_owned() },
        };
        let conditions = vec![
            condition("RuntimeReady", script.runtime_ready, "RuntimeNotReady", "runtime is not ready"),
            condition("NetworkReady", script.network_ready, "NetworkPluginNotReady", "cni plugin not initialized"),
        ];
        let handler = |name: &str| v1::RuntimeHandler {
            name: name.to_owned(),
            features: Some(v1::RuntimeHandlerFeatures { user_namespaces: true, ..Default::default() }),
        };
        let handlers = if script.features.user_namespaces { vec![handler(""), handler("special")] } else { Vec::new() };
        let status = Some(v1::RuntimeStatus { conditions });
        v1::StatusResponse { status, runtime_handlers: handlers, ..Default::default() }
    }

    fn sandbox_status(&self, id: &str) -> Result<v1::PodSandboxStatusResponse, Status> {
        let status = Some(lock(&self.state).sandbox(id)?.to_status());
        Ok(v1::PodSandboxStatusResponse { status, ..Default::default() })
    }

    /// All of these, or every other one.
    fn listed<T>(&self, all: impl Iterator<Item = T>) -> Vec<T> {
        let partial = &mut lock(&self.script).partial_lists;
        let left = *partial as usize;
        *partial = partial.saturating_sub(1);
        // Lists of sandboxes and of containers follow each other: they lack the same pods, or not.
        if left == 0 { all.collect() } else { all.skip(left.div_ceil(2) % 2).step_by(2).collect() }
    }

    fn list_sandboxes(&self, filter: Option<v1::PodSandboxFilter>) -> v1::ListPodSandboxResponse {
        let filter = filter.unwrap_or_default();
        let state = lock(&self.state);
        let matching = state.sandboxes.values().filter(|s| sandbox_matches(s, &filter));
        v1::ListPodSandboxResponse { items: self.listed(matching.map(FakeSandbox::to_list)) }
    }

    fn list_containers(&self, filter: Option<v1::ContainerFilter>) -> v1::ListContainersResponse {
        let filter = filter.unwrap_or_default();
        let state = lock(&self.state);
        let matching = state.containers.values().filter(|c| container_matches(c, &filter));
        v1::ListContainersResponse { containers: self.listed(matching.map(FakeContainer::to_list)) }
    }

    fn container_status(&self, id: &str) -> Result<v1::ContainerStatusResponse, Status> {
        let with_resources = lock(&self.script).features.resources_in_status;
        let status = Some(lock(&self.state).container(id)?.to_status(with_resources));
        Ok(v1::ContainerStatusResponse { status, ..Default::default() })
    }

    fn update_resources(&self, r: v1::UpdateContainerResourcesRequest) -> Result<(), Status> {
        let mut state = lock(&self.state);
        let container = state.container_mut(&r.container_id)?;
        if let Some(new) = r.linux {
            let now = container.resources.get_or_insert_default();
            for (to, from) in [
                (&mut now.cpu_period, new.cpu_period),
                (&mut now.cpu_quota, new.cpu_quota),
                (&mut now.cpu_shares, new.cpu_shares),
                (&mut now.memory_limit_in_bytes, new.memory_limit_in_bytes),
            ] {
                if from != 0 {
                    *to = from;
                }
            }
        }
        Ok(())
    }

    fn reopen_log(&self, id: &str) -> Result<v1::ReopenContainerLogResponse, Status> {
        let state = lock(&self.state);
        let container = state.container(id)?;
        if !container.running() {
            return Err(Status::unknown("container is not running"));
        }
        self.append(&container.log_path, "");
        Ok(v1::ReopenContainerLogResponse {})
    }

    fn stats(&self, filter: Option<v1::ContainerStatsFilter>) -> v1::ListContainerStatsResponse {
        if let Some(stats) = lock(&self.script).container_stats.clone() {
            return v1::ListContainerStatsResponse { stats };
        }
        let f = filter.unwrap_or_default();
        let f = v1::ContainerFilter {
            id: f.id,
            pod_sandbox_id: f.pod_sandbox_id,
            label_selector: f.label_selector,
            state: None,
        };
        let attributes = |c: &FakeContainer| v1::ContainerAttributes {
            id: c.id.clone(),
            metadata: c.config.metadata.clone(),
            labels: c.config.labels.clone(),
            annotations: c.config.annotations.clone(),
        };
        let state = lock(&self.state);
        let matching = state.containers.values().filter(|c| c.running() && container_matches(c, &f));
        let stats = matching.map(|c| v1::ContainerStats { attributes: Some(attributes(c)), ..Default::default() });
        v1::ListContainerStatsResponse { stats: stats.collect() }
    }
}

impl RuntimeApi {
    /// Subject and URL of a session.
    fn session(&self, kind: &str, id: &str) -> (String, String) {
        let url = lock(&self.0.script).stream_url.clone();
        let subject = lock(&self.0.state).subject(id);
        (subject, url.unwrap_or_else(|| format!("http://127.0.0.1:1/{kind}/{id}")))
    }
}

#[async_trait]
impl RuntimeService for RuntimeApi {
    async fn version(&self, r: Request<v1::VersionRequest>) -> Result<Response<v1::VersionResponse>, Status> {
        let answer = v1::VersionResponse {
            version: r.into_inner().version,
            runtime_name: "fake".to_owned(),
            runtime_version: "1.0.0".to_owned(),
            runtime_api_version: "v1".to_owned(),
        };
        self.0.call("Version", String::new(), None, async move { Ok(answer) }).await
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        let inner = Arc::clone(&self.0);
        self.0.call("Status", String::new(), None, async move { Ok(inner.status()) }).await
    }

    async fn runtime_config(
        &self,
        _: Request<v1::RuntimeConfigRequest>,
    ) -> Result<Response<v1::RuntimeConfigResponse>, Status> {
        let driver = lock(&self.0.script).features.cgroup_driver;
        let effect = async move {
            let cgroup_driver = driver.ok_or_else(|| unknown("RuntimeConfig"))?.into();
            Ok(v1::RuntimeConfigResponse { linux: Some(v1::LinuxRuntimeConfiguration { cgroup_driver }) })
        };
        self.0.call("RuntimeConfig", String::new(), None, effect).await
    }

    async fn update_runtime_config(
        &self,
        r: Request<v1::UpdateRuntimeConfigRequest>,
    ) -> Result<Response<v1::UpdateRuntimeConfigResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = String::new();
        let mutation = Some(Mutation::from(r.clone()));
        self.0
            .call("UpdateRuntimeConfig", subject, mutation, async move {
                drop(inner);
                Ok(v1::UpdateRuntimeConfigResponse {})
            })
            .await
    }

    async fn run_pod_sandbox(
        &self,
        r: Request<v1::RunPodSandboxRequest>,
    ) -> Result<Response<v1::RunPodSandboxResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = pod_subject(r.config.as_ref());
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("RunPodSandbox", subject, mutation, async move { inner.run_sandbox(r) }).await
    }

    async fn stop_pod_sandbox(
        &self,
        r: Request<v1::StopPodSandboxRequest>,
    ) -> Result<Response<v1::StopPodSandboxResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.pod_sandbox_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("StopPodSandbox", subject, mutation, async move { inner.stop_sandbox(&r.pod_sandbox_id) }).await
    }

    async fn remove_pod_sandbox(
        &self,
        r: Request<v1::RemovePodSandboxRequest>,
    ) -> Result<Response<v1::RemovePodSandboxResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.pod_sandbox_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("RemovePodSandbox", subject, mutation, async move { inner.remove_sandbox(&r.pod_sandbox_id) }).await
    }

    async fn pod_sandbox_status(
        &self,
        r: Request<v1::PodSandboxStatusRequest>,
    ) -> Result<Response<v1::PodSandboxStatusResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.pod_sandbox_id);
        let mutation = None;
        self.0.call("PodSandboxStatus", subject, mutation, async move { inner.sandbox_status(&r.pod_sandbox_id) }).await
    }

    async fn list_pod_sandbox(
        &self,
        r: Request<v1::ListPodSandboxRequest>,
    ) -> Result<Response<v1::ListPodSandboxResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = String::new();
        let mutation = None;
        self.0.call("ListPodSandbox", subject, mutation, async move { Ok(inner.list_sandboxes(r.filter)) }).await
    }

    async fn update_pod_sandbox_resources(
        &self,
        r: Request<v1::UpdatePodSandboxResourcesRequest>,
    ) -> Result<Response<v1::UpdatePodSandboxResourcesResponse>, Status> {
        let r = r.into_inner();
        let supported = lock(&self.0.script).features.sandbox_resize;
        let subject = lock(&self.0.state).subject(&r.pod_sandbox_id);
        let effect = async move {
            supported
                .then_some(v1::UpdatePodSandboxResourcesResponse {})
                .ok_or_else(|| unknown("UpdatePodSandboxResources"))
        };
        self.0.call("UpdatePodSandboxResources", subject, Some(r.into()), effect).await
    }

    async fn create_container(
        &self,
        r: Request<v1::CreateContainerRequest>,
    ) -> Result<Response<v1::CreateContainerResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = format!(
            "{}/{}",
            lock(&inner.state).subject(&r.pod_sandbox_id),
            r.config.as_ref().and_then(|c| c.metadata.as_ref()).map_or("", |m| m.name.as_str())
        );
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("CreateContainer", subject, mutation, async move { inner.create_container(r) }).await
    }

    async fn start_container(
        &self,
        r: Request<v1::StartContainerRequest>,
    ) -> Result<Response<v1::StartContainerResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("StartContainer", subject, mutation, async move { inner.start_container(&r.container_id) }).await
    }

    async fn stop_container(
        &self,
        r: Request<v1::StopContainerRequest>,
    ) -> Result<Response<v1::StopContainerResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0
            .call(
                "StopContainer",
                subject,
                mutation,
                async move { inner.stop_container(&r.container_id, r.timeout).await },
            )
            .await
    }

    async fn remove_container(
        &self,
        r: Request<v1::RemoveContainerRequest>,
    ) -> Result<Response<v1::RemoveContainerResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0
            .call("RemoveContainer", subject, mutation, async move { Ok(inner.remove_container(&r.container_id)) })
            .await
    }

    async fn list_containers(
        &self,
        r: Request<v1::ListContainersRequest>,
    ) -> Result<Response<v1::ListContainersResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = String::new();
        let mutation = None;
        self.0.call("ListContainers", subject, mutation, async move { Ok(inner.list_containers(r.filter)) }).await
    }

    async fn container_status(
        &self,
        r: Request<v1::ContainerStatusRequest>,
    ) -> Result<Response<v1::ContainerStatusResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = None;
        self.0.call("ContainerStatus", subject, mutation, async move { inner.container_status(&r.container_id) }).await
    }

    async fn update_container_resources(
        &self,
        r: Request<v1::UpdateContainerResourcesRequest>,
    ) -> Result<Response<v1::UpdateContainerResourcesResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0
            .call("UpdateContainerResources", subject, mutation, async move {
                inner.update_resources(r).map(|()| v1::UpdateContainerResourcesResponse {})
            })
            .await
    }

    async fn reopen_container_log(
        &self,
        r: Request<v1::ReopenContainerLogRequest>,
    ) -> Result<Response<v1::ReopenContainerLogResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("ReopenContainerLog", subject, mutation, async move { inner.reopen_log(&r.container_id) }).await
    }

    async fn exec_sync(&self, r: Request<v1::ExecSyncRequest>) -> Result<Response<v1::ExecSyncResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = lock(&inner.state).subject(&r.container_id);
        let mutation = Some(Mutation::from(r.clone()));
        self.0.call("ExecSync", subject, mutation, async move { inner.exec(r).await }).await
    }

    async fn exec(&self, r: Request<v1::ExecRequest>) -> Result<Response<v1::ExecResponse>, Status> {
        let r = r.into_inner();
        let (subject, url) = self.session("exec", &r.container_id);
        self.0.call("Exec", subject, Some(r.into()), async move { Ok(v1::ExecResponse { url }) }).await
    }

    async fn attach(&self, r: Request<v1::AttachRequest>) -> Result<Response<v1::AttachResponse>, Status> {
        let r = r.into_inner();
        let (subject, url) = self.session("attach", &r.container_id);
        self.0.call("Attach", subject, Some(r.into()), async move { Ok(v1::AttachResponse { url }) }).await
    }

    async fn port_forward(
        &self,
        r: Request<v1::PortForwardRequest>,
    ) -> Result<Response<v1::PortForwardResponse>, Status> {
        let r = r.into_inner();
        let (subject, url) = self.session("port_forward", &r.pod_sandbox_id);
        self.0.call("PortForward", subject, Some(r.into()), async move { Ok(v1::PortForwardResponse { url }) }).await
    }

    async fn list_container_stats(
        &self,
        r: Request<v1::ListContainerStatsRequest>,
    ) -> Result<Response<v1::ListContainerStatsResponse>, Status> {
        let (inner, r) = (Arc::clone(&self.0), r.into_inner());
        let subject = String::new();
        let mutation = None;
        self.0.call("ListContainerStats", subject, mutation, async move { Ok(inner.stats(r.filter)) }).await
    }

    async fn container_stats(
        &self,
        _: Request<v1::ContainerStatsRequest>,
    ) -> Result<Response<v1::ContainerStatsResponse>, Status> {
        Err(unknown("ContainerStats"))
    }

    async fn pod_sandbox_stats(
        &self,
        _: Request<v1::PodSandboxStatsRequest>,
    ) -> Result<Response<v1::PodSandboxStatsResponse>, Status> {
        Err(unknown("PodSandboxStats"))
    }

    async fn list_pod_sandbox_stats(
        &self,
        _: Request<v1::ListPodSandboxStatsRequest>,
    ) -> Result<Response<v1::ListPodSandboxStatsResponse>, Status> {
        Err(unknown("ListPodSandboxStats"))
    }

    async fn checkpoint_container(
        &self,
        _: Request<v1::CheckpointContainerRequest>,
    ) -> Result<Response<v1::CheckpointContainerResponse>, Status> {
        Err(unknown("CheckpointContainer"))
    }

    async fn list_metric_descriptors(
        &self,
        _: Request<v1::ListMetricDescriptorsRequest>,
    ) -> Result<Response<v1::ListMetricDescriptorsResponse>, Status> {
        Err(unknown("ListMetricDescriptors"))
    }

    async fn list_pod_sandbox_metrics(
        &self,
        _: Request<v1::ListPodSandboxMetricsRequest>,
    ) -> Result<Response<v1::ListPodSandboxMetricsResponse>, Status> {
        Err(unknown("ListPodSandboxMetrics"))
    }

    type GetContainerEventsStream = Pin<Box<dyn Stream<Item = Result<v1::ContainerEventResponse, Status>> + Send>>;

    async fn get_container_events(
        &self,
        _: Request<v1::GetEventsRequest>,
    ) -> Result<Response<Self::GetContainerEventsStream>, Status> {
        if !lock(&self.0.script).features.cri_events {
            return self
                .0
                .call("GetContainerEvents", String::new(), None, async { Err(unknown("GetContainerEvents")) })
                .await;
        }
        self.0.call("GetContainerEvents", String::new(), None, async { Ok(()) }).await?;
        if lock(&self.0.script).close_streams {
            return Ok(Response::new(Box::pin(tokio_stream::empty())));
        }
        let changes = BroadcastStream::new(self.0.changes.subscribe());
        Ok(Response::new(Box::pin(changes.filter_map(Result::ok).map(|c| Ok(c.cri)))))
    }

    type StreamPodSandboxesStream = NoStream<v1::StreamPodSandboxesResponse>;

    async fn stream_pod_sandboxes(
        &self,
        _: Request<v1::StreamPodSandboxesRequest>,
    ) -> Result<Response<Self::StreamPodSandboxesStream>, Status> {
        Err(unknown("StreamPodSandboxes"))
    }

    type StreamContainersStream = NoStream<v1::StreamContainersResponse>;

    async fn stream_containers(
        &self,
        _: Request<v1::StreamContainersRequest>,
    ) -> Result<Response<Self::StreamContainersStream>, Status> {
        Err(unknown("StreamContainers"))
    }

    type StreamContainerStatsStream = NoStream<v1::StreamContainerStatsResponse>;

    async fn stream_container_stats(
        &self,
        _: Request<v1::StreamContainerStatsRequest>,
    ) -> Result<Response<Self::StreamContainerStatsStream>, Status> {
        Err(unknown("StreamContainerStats"))
    }

    type StreamPodSandboxStatsStream = NoStream<v1::StreamPodSandboxStatsResponse>;

    async fn stream_pod_sandbox_stats(
        &self,
        _: Request<v1::StreamPodSandboxStatsRequest>,
    ) -> Result<Response<Self::StreamPodSandboxStatsStream>, Status> {
        Err(unknown("StreamPodSandboxStats"))
    }

    type StreamPodSandboxMetricsStream = NoStream<v1::StreamPodSandboxMetricsResponse>;

    async fn stream_pod_sandbox_metrics(
        &self,
        _: Request<v1::StreamPodSandboxMetricsRequest>,
    ) -> Result<Response<Self::StreamPodSandboxMetricsStream>, Status> {
        Err(unknown("StreamPodSandboxMetrics"))
    }
}
