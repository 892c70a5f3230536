//! In-place resize of the pod's running containers (pod-lifecycle 4.8): what is left to do, and doing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cgroup_values::resize::{Kind, Step, steps};
use cgroup_values::{cri, tree};
use contract::cgroup::{PodCgroupRow, PodCgroupUse, ReadPodCgroup, ResizePodCgroup};
use contract::runtime::{UpdateContainerResources, UpdatePodSandboxResources};
use contract::status::StatusEntry;
use metrics::pods;
use model::SandboxId;
use model::allocation::{Amounts, ResizeInProgress, asks_the_same, summary};
use model::core::{Container, Pod, PodStatus};
use model::event::EventType;
use model::resources::CgroupValues;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use pod_plan::{ContainerResize, Resize};
use pod_status::reasons::condition;

use crate::job::{Failure, Job};
use crate::memo::Actuated;

mod figures;

use figures::{amounts_in_force, is_in_force, limits_too_low};

impl Job {
    /// Compares what the pod shall have with what its running containers were told last.
    pub(crate) async fn note_resize(&mut self, observed: &PodObservation) {
        let what = self.deps.config.resizable;
        let before = self.memo.acted_on.replace(self.pod.clone());
        let other = before.as_ref().filter(|b| !Arc::ptr_eq(b, &self.pod) && !asks_the_same(b, &self.pod, what));
        let actuated = self.actuated_now(before.as_deref(), other.map(|b| &**b), observed);
        let is_behind = std::mem::take(&mut self.memo.is_behind) || other.is_some() || !actuated.is_empty();
        let cgroup_behind = self.memo.record.cgroup_behind || is_behind;
        if (&actuated, cgroup_behind) != (&self.memo.record.actuated, self.memo.record.cgroup_behind) {
            self.memo.record.actuated = actuated;
            self.memo.record.cgroup_behind = cgroup_behind;
            self.save_record().await;
        }
        let was = self.memo.resize.take().or_else(|| self.told_resize().filter(|_| before.is_none()));
        let generation = self.pod.metadata.generation.unwrap_or(0);
        let granted = other.map(|_| ResizeInProgress { generation, error: None });
        let now = granted.or(was);
        if self.memo.record.is_resizing() {
            self.memo.resize = Some(now.unwrap_or(ResizeInProgress { generation, error: None }));
        } else if let Some(done) = now {
            let text = format!("Pod resize completed: {}", summary(&self.pod, done.generation, ""));
            self.event(EventType::Normal, "ResizeCompleted", text);
        }
    }

    /// Running containers that have not all that they shall have. `before`: the pod as the last step knew it; `other`: the same,
    /// where it had other resources.
    fn actuated_now(
        &self,
        before: Option<&Pod>,
        other: Option<&Pod>,
        observed: &PodObservation,
    ) -> BTreeMap<String, Actuated> {
        // One that is created and not started will run with what it was created with.
        let lives = |o: &&ContainerObservation| matches!(o.state, ContainerState::Running | ContainerState::Created);
        let running = |c: &Container| observed.container(&c.name).filter(lives);
        let known = |c: &Container, o: &ContainerObservation| {
            let recorded = self.memo.record.actuated.get(&c.name).filter(|a| a.id == o.id.as_str()).map(|a| a.amounts);
            if before.is_none() {
                // An earlier daemon or worker may have died over a resize, and its last lines with it: the runtime knows better.
                return amounts_in_force(&self.pod, c, o, recorded, &self.deps.config).or(recorded);
            }
            let was = || {
                let was = Amounts::of(other?, &model::pod::find_container(other?, &c.name)?.1);
                let is_done = is_in_force(&self.pod, c, o, was, &self.deps.config);
                (!is_done).then_some(was)
            };
            recorded.or_else(was)
        };
        let all = self.deps.config.resizable.containers(&self.pod);
        all.filter_map(|c| {
            let o = running(c)?;
            let amounts = known(c, o).filter(|a| *a != Amounts::of(&self.pod, c))?;
            Some((c.name.clone(), Actuated { id: o.id.to_string(), amounts }))
        })
        .collect()
    }

    /// What the status said of a resize when the worker of an earlier daemon ended.
    fn told_resize(&self) -> Option<ResizeInProgress> {
        let row = self.crew.board::<StatusEntry>().get(&self.uid);
        let of = |s: &PodStatus| {
            let told = s.conditions.iter().flatten().find(|c| c.type_ == condition::RESIZE_IN_PROGRESS)?.clone();
            let error = told.message.filter(|_| told.reason.as_deref() == Some("Error"));
            Some(ResizeInProgress { generation: told.observed_generation.unwrap_or(0), error })
        };
        row.and_then(|r| of(&r.status)).or_else(|| of(self.pod.status.as_ref()?))
    }

    /// What went wrong with a resize last.
    pub(crate) fn resize_error(&self) -> Option<String> {
        self.memo.resize.as_ref()?.error.clone()
    }

    /// Carries a resize out. What fails stops it; a later step goes on.
    pub(crate) async fn resize(&mut self, plan: &Resize, sandbox: &SandboxId) -> Result<(), Failure> {
        if plan.is_none() {
            return Ok(());
        }
        let began = self.clock.now();
        let outcome = self.carry_out(plan, sandbox).await;
        let took = self.clock.now().saturating_duration_since(began);
        let success = if outcome.is_ok() { "true" } else { "false" };
        pods::RESIZE_DURATION.with_label_values(&[success]).observe(took.as_secs_f64() * 1000.0);
        let Err(e) = outcome else { return Ok(()) };
        let generation = self.pod.metadata.generation.unwrap_or(0);
        let told = self.memo.resize.get_or_insert(ResizeInProgress { generation, error: None });
        if told.error.as_ref() != Some(&e) {
            told.error = Some(e.clone());
            let text = format!("Pod resize error: {}", summary(&self.pod, told.generation, &e));
            self.event(EventType::Warning, "ResizeError", text);
        }
        Err(Failure::new(format!("failed to \"ResizePodInPlace\" for {:?}: {e}", model::pod::describe(&self.pod))))
    }

    async fn carry_out(&mut self, plan: &Resize, sandbox: &SandboxId) -> Result<(), String> {
        let config = self.deps.config.clone();
        self.effects.hit("before resize").await;
        let used = self.call(ReadPodCgroup { pod: self.pod.clone() }).await;
        let used: PodCgroupUse = used.map_err(|e| format!("unable to get the configuration of the pod cgroup: {e}"))?;
        // Where pods have no cgroups of their own, there is none to be limited.
        let wanted = match self.crew.board::<PodCgroupRow>().get(&self.uid) {
            Some(_) => tree::pod_values(&self.pod, &config.facts, &config.rules),
            None => CgroupValues::default(),
        };
        limits_too_low(plan, &used, &wanted)?;
        let mut now = used.values;
        let pod = plan.restarts || plan.pod;
        for step in steps(&now, &wanted, pod || !plan.memory.is_empty(), pod || !plan.cpu.is_empty()) {
            match step {
                Step::Pod(values) => now = self.resize_pod(sandbox, now, values).await?,
                Step::Containers(kind) => {
                    let list = if kind == Kind::Memory { &plan.memory } else { &plan.cpu };
                    for one in list {
                        self.resize_container(kind, one).await?;
                    }
                }
            }
        }
        self.memo.record.cgroup_behind = false;
        self.save_record_soon();
        Ok(())
    }

    /// The runtime hears of it first: it may refuse. Answers with what the pod has then.
    async fn resize_pod(
        &self,
        sandbox: &SandboxId,
        now: CgroupValues,
        values: CgroupValues,
    ) -> Result<CgroupValues, String> {
        let next = CgroupValues {
            cpu_shares: values.cpu_shares.or(now.cpu_shares),
            cpu_quota_us: values.cpu_quota_us.or(now.cpu_quota_us),
            cpu_period_us: values.cpu_period_us.or(now.cpu_period_us),
            memory_limit_bytes: values.memory_limit_bytes.or(now.memory_limit_bytes),
            ..now.clone()
        };
        let told = self.tell_sandbox(sandbox, &next).await;
        told.map_err(|e| format!("failed to notify runtime for UpdatePodSandboxResources; resize rejected: {e}"))?;
        self.effects.hit("before ResizePodCgroup").await;
        if let Err(e) = self.call(ResizePodCgroup { pod: self.pod.clone(), values }).await {
            if let Err(e) = self.tell_sandbox(sandbox, &now).await {
                tracing::warn!(uid = %self.uid, error = %e, "the runtime is not told that the pod keeps its size");
            }
            return Err(e.to_string());
        }
        Ok(next)
    }

    async fn tell_sandbox(&self, sandbox: &SandboxId, values: &CgroupValues) -> Result<(), String> {
        let config = &self.deps.config;
        let ask = UpdatePodSandboxResources {
            uid: self.uid.clone(),
            sandbox: sandbox.clone(),
            linux_overhead: Arc::new(cri::sandbox_overhead(&self.pod, &config.facts, &config.rules)),
            linux: Arc::new(cri::resized_sandbox(&self.pod, values, &config.rules)),
        };
        self.call(ask).await.map_err(|e| e.go_text())
    }

    /// Tells the runtime of one kind; of the other the container keeps what it has.
    async fn resize_container(&mut self, kind: Kind, one: &ContainerResize) -> Result<(), String> {
        let Some((_, container)) = model::pod::find_container(&self.pod, &one.name) else { return Ok(()) };
        let has = self.memo.record.actuated.get(&one.name).map_or(one.actuated, |a| a.amounts);
        let next = match kind {
            Kind::Memory => Amounts {
                memory_request_bytes: one.wanted.memory_request_bytes,
                memory_limit_bytes: one.wanted.memory_limit_bytes,
                ..has
            },
            Kind::Cpu => Amounts {
                cpu_request_milli: one.wanted.cpu_request_milli,
                cpu_limit_milli: one.wanted.cpu_limit_milli,
                ..has
            },
        };
        let container = next.on(container);
        let config = &self.deps.config;
        let resources = cri::container_resources(&self.pod, &container, &config.facts, &config.rules);
        self.effects.hit("before UpdateContainerResources").await;
        let (uid, id) = (self.uid.clone(), one.id.clone());
        let ask = UpdateContainerResources { uid, container: id, linux: Arc::new(resources) };
        self.call(ask).await.map_err(|e| e.go_text())?;
        self.effects.hit("after UpdateContainerResources").await;
        if next == one.wanted {
            self.memo.record.actuated.remove(&one.name);
        } else {
            let actuated = Actuated { id: one.id.to_string(), amounts: next };
            self.memo.record.actuated.insert(one.name.clone(), actuated);
        }
        self.save_record_soon();
        Ok(())
    }
}
