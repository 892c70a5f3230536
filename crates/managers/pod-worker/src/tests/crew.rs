//! All managers but the object store in one actor, which faults can strike.

use super::*;
use actor::{Actor, Ctx, Handler, supervised};
use contract::cgroup::{
    CgroupError, EnsurePodCgroup, PodCgroup, PodCgroupUse, ReadPodCgroup, RemovePodCgroup, ResizePodCgroup,
};
use contract::event::RecordEvent;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use contract::probe::{PodProbes, StartProbes, StopProbes};
use contract::runtime::{
    CallError, CallErrorKind, CreateContainer, ObservePod, RemoveContainer, RunPodSandbox, StartContainer,
    StopContainer, StopPodSandbox, UpdateContainerResources, UpdatePodSandboxResources,
};
use contract::status::{SetPodStatus, StatusEntry, TerminatePod};
use contract::volume::{
    AssignUserNamespace, MakePodDirs, MountVolumes, ReleaseUserNamespace, UnmountVolumes, VolumeError,
};
use model::probe::ProbeKind;
use model::userns::UserNamespace;
use model::{ContainerId, SandboxId};

pub(super) struct Crew {
    pub(super) world: Shared,
    pub(super) wiring: Wiring,
}

impl Actor for Crew {
    type Context = Ctx<Self>;
}
supervised!(Crew);

impl Crew {
    fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        f(&mut self.world.lock().unwrap())
    }

    fn say(&self, word: impl Into<String>) {
        self.with(|w| w.words.push(word.into()));
    }

    /// Changes what the runtime has, and its board shows it.
    fn happens<T>(&self, f: impl FnOnce(&mut PodObservation) -> T) -> T {
        let (out, now) = self.with(|w| {
            let observed = w.observed.get_or_insert_with(nothing);
            let out = f(observed);
            (out, observed.clone())
        });
        fakes::observe(&self.wiring, now);
        out
    }

    fn post(&self, status: PodStatus, finished: bool) {
        let version = self.wiring.board::<StatusEntry>().get(&UID.into()).map_or(0, |e| e.version) + 1;
        let entry = fakes::status_entry(&pod(json!({}), json!({})), status);
        self.wiring.put(UID.into(), StatusEntry { version, finished, ..entry });
    }
}

macro_rules! answers {
    ($($message:ty => $result:ty, |$crew:ident, $m:ident| $body:expr;)*) => {
        $(impl Handler<$message> for Crew {
            type Result = $result;
            fn handle(&mut self, $m: $message, _: &mut Ctx<Self>) -> $result {
                let $crew = self;
                $body
            }
        })*

        pub(super) fn connect(crew: &ActorRef<Crew>, wiring: &Wiring) {
            $(wiring.inlet::<$message>().connect(crew);)*
        }
    };
}

answers! {
    RecordEvent => (), |crew, m| crew.say(format!("event {} {}", m.event.reason, m.event.message));
    EnsurePodCgroup => Result<PodCgroup, CgroupError>, |crew, _m| {
        let made = PodCgroup { parent: "/pods".to_owned(), existed: true };
        crew.with(|w| w.cgroup_fails.clone().map_or(Ok(made), Err))
    };
    RemovePodCgroup => Result<(), CgroupError>, |crew, _m| {
        crew.say("cgroup removed");
        Ok(())
    };
    ReadPodCgroup => Result<PodCgroupUse, CgroupError>, |crew, _m| Ok(crew.with(|w| w.cgroup.clone()));
    ResizePodCgroup => Result<(), CgroupError>, |crew, m| {
        let v = m.values;
        crew.say(format!("cgroup {:?} {:?} {:?}", v.memory_limit_bytes, v.cpu_quota_us, v.cpu_shares));
        crew.with(|w| {
            let now = &mut w.cgroup.values;
            now.memory_limit_bytes = v.memory_limit_bytes.or(now.memory_limit_bytes);
            now.cpu_quota_us = v.cpu_quota_us.or(now.cpu_quota_us);
            now.cpu_shares = v.cpu_shares.or(now.cpu_shares);
        });
        Ok(())
    };
    UpdatePodSandboxResources => Result<(), CallError>, |crew, m| {
        crew.say(format!("sandbox {} {} {}", m.linux.memory_limit_in_bytes, m.linux.cpu_quota, m.linux.cpu_shares));
        Ok(())
    };
    UpdateContainerResources => Result<(), CallError>, |crew, m| {
        if let Some(message) = crew.with(|w| w.update_fails.take()) {
            return Err(CallError::new(CallErrorKind::Failed, message));
        }
        let r = &m.linux;
        crew.say(format!("{} {} {} {}", m.container, r.memory_limit_in_bytes, r.cpu_quota, r.cpu_shares));
        crew.happens(|o| o.containers[0].resources = Some(model::runtime::RuntimeResources {
            cpu_shares: r.cpu_shares,
            cpu_quota_us: r.cpu_quota,
            cpu_period_us: r.cpu_period,
            memory_limit_bytes: r.memory_limit_in_bytes,
        }));
        Ok(())
    };
    MakePodDirs => Result<(), VolumeError>, |_crew, _m| Ok(());
    AssignUserNamespace => Result<UserNamespace, VolumeError>, |_crew, _m| {
        Ok(UserNamespace { host_id: 131_072, length: 65_536 })
    };
    ReleaseUserNamespace => Result<(), VolumeError>, |_crew, _m| Ok(());
    MountVolumes => Result<Arc<MountedVolumes>, VolumeError>, |crew, _m| {
        crew.with(|w| match w.volumes_fail.clone() {
            Some(e) => Err(e),
            None => Ok(Arc::new(w.volumes.clone())),
        })
    };
    UnmountVolumes => Result<(), VolumeError>, |crew, _m| {
        crew.say("volumes gone");
        Ok(())
    };
    EnsureImage => Result<EnsuredImage, ImageFailure>, |crew, m| {
        let names = m.pull_secrets.iter().filter_map(|s| s.metadata.name.clone()).collect();
        crew.with(|w| w.pull_secrets.push(names));
        Ok(EnsuredImage { image_ref: "img".to_owned(), ..EnsuredImage::default() })
    };
    SetPodStatus => (), |crew, m| {
        let ready = m.status.conditions.iter().flatten().find(|c| c.type_ == "Ready");
        let line = format!("status {} ready={}", m.status.phase.as_deref().unwrap_or_default(),
            ready.map(|c| c.status.clone()).unwrap_or_default());
        crew.with(|w| w.statuses.push((*m.status).clone()));
        crew.say(line);
        crew.post(Arc::unwrap_or_clone(m.status), false);
    };
    TerminatePod => (), |crew, _m| {
        crew.say("finished");
        let status = crew.with(|w| w.statuses.last().cloned().unwrap_or_default());
        crew.post(status, true);
    };
    StartProbes => (), |crew, m| {
        if crew.wiring.board::<PodProbes>().get(&UID.into()).is_some() {
            return;
        }
        crew.say("probes start");
        let mut row = PodProbes::default();
        for c in model::pod::regular_containers(&m.pod) {
            if c.readiness_probe.is_some() {
                row.probes.entry(c.name.clone()).or_default().insert(ProbeKind::Readiness);
            }
        }
        crew.wiring.put(UID.into(), row);
    };
    StopProbes => (), |crew, _m| crew.say("probes stop");
    ObservePod => Result<Arc<PodObservation>, CallError>, |crew, _m| {
        Ok(Arc::new(crew.with(|w| w.observed.clone().unwrap_or_else(nothing))))
    };
    RunPodSandbox => Result<SandboxId, CallError>, |crew, m| {
        crew.with(|w| w.sandboxes.push(m.clone()));
        if let Some((code, message)) = crew.with(|w| w.sandbox_fails.take()) {
            return Err(CallError { kind: CallErrorKind::Failed, message, code });
        }
        crew.say("RunPodSandbox");
        crew.happens(|o| {
            o.sandboxes.insert(0, sandbox(&m.runtime_handler));
            o.ips = vec!["10.1.0.7".parse().unwrap()];
        });
        Ok("sb".into())
    };
    StopPodSandbox => Result<(), CallError>, |crew, _m| {
        crew.say("StopPodSandbox");
        crew.happens(|o| o.sandboxes.iter_mut().for_each(|s| s.ready = false));
        Ok(())
    };
    CreateContainer => Result<ContainerId, CallError>, |crew, m| {
        crew.say("CreateContainer");
        crew.with(|w| w.created.push(m.config.clone()));
        crew.happens(|o| {
            let hash = m.config.annotations.get("io.kubernetes.container.hash");
            let hash = hash.and_then(|h| u64::from_str_radix(h, 16).ok()).unwrap_or(0);
            let mut created = container("c-new", hash);
            created.state = ContainerState::Created;
            created.created_at = Timestamp::from_secs(20);
            o.containers.insert(0, created);
        });
        Ok("c-new".into())
    };
    StartContainer => Result<(), CallError>, |crew, _m| {
        crew.say("StartContainer");
        if let Some(message) = crew.with(|w| w.start_fails.take()) {
            return Err(CallError { kind: CallErrorKind::Failed, message, code: "Unknown".to_owned() });
        }
        crew.happens(|o| {
            o.containers[0].state = ContainerState::Running;
            o.containers[0].started_at = Timestamp::from_secs(21);
        });
        Ok(())
    };
    RemoveContainer => Result<(), CallError>, |crew, m| {
        crew.happens(|o| o.containers.retain(|c| c.id != m.container));
        Ok(())
    };
    StopContainer => Result<(), CallError>, |crew, m| {
        crew.say(format!("StopContainer {}", m.grace_s));
        crew.happens(|o| {
            for c in &mut o.containers {
                c.state = ContainerState::Exited;
                c.exit_code = 137;
                c.finished_at = Timestamp::from_secs(30);
            }
        });
        Ok(())
    };
}
