//! Times without their fractions: what `/stats/summary` shows.

use super::{ContainerStats, NodeStats, PodStats, Summary};
use crate::Timestamp;

impl Summary {
    /// With every time cut to whole seconds, as a kubelet shows them.
    #[must_use]
    pub fn in_whole_seconds(&self) -> Summary {
        let mut cut = self.clone();
        cut.node.each_time(&mut whole);
        for pod in &mut cut.pods {
            pod.each_time(&mut whole);
        }
        cut
    }
}

fn whole(time: &mut Timestamp) {
    *time = Timestamp::from_secs(time.0.div_euclid(1_000_000_000));
}

macro_rules! times {
    ($each:ident: $of:ident.start_time, $($part:ident),*) => {
        $each(&mut $of.start_time);
        $(if let Some(part) = &mut $of.$part {
            $each(&mut part.time);
        })*
    };
}

impl NodeStats {
    fn each_time(&mut self, each: &mut impl FnMut(&mut Timestamp)) {
        times!(each: self.start_time, cpu, memory, io, network, fs, rlimit, swap);
        for container in &mut self.system_containers {
            container.each_time(each);
        }
        let disks = self.runtime.iter_mut().flat_map(|r| [&mut r.image_fs, &mut r.container_fs]);
        for disk in disks.flatten() {
            each(&mut disk.time);
        }
    }
}

impl PodStats {
    fn each_time(&mut self, each: &mut impl FnMut(&mut Timestamp)) {
        times!(each: self.start_time, cpu, memory, io, network, ephemeral_storage, swap);
        for container in &mut self.containers {
            container.each_time(each);
        }
        for volume in &mut self.volumes {
            each(&mut volume.fs.time);
        }
    }
}

impl ContainerStats {
    fn each_time(&mut self, each: &mut impl FnMut(&mut Timestamp)) {
        times!(each: self.start_time, cpu, memory, io, rootfs, logs, swap);
    }
}
