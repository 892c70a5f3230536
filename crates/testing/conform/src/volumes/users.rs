//! Ids of the host that stand for users of pods.

use contract::VolumeManager;
use contract::volume::{AssignUserNamespace, ReleaseUserNamespace};
use model::PodUid;
use model::userns::UserNamespace;

use super::bed::{Bed, case};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};

pub(super) fn cases() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "ids",
            "node-and-resources 10.7",
            "a pod has a multiple of 65536 ids, above those of the host, and no other pod has one of them",
            ids,
        )
        .core(),
        case("ids-twice", "contract", "asked again, a pod has the same ids", ids_twice).core(),
        case("ids-after-a-crash", "contract", "a pod keeps its ids over a death of the manager", ids_after_a_crash)
            .core(),
        case(
            "ids-after-a-swap",
            "contract",
            "a pod keeps its ids when another manager takes the place",
            ids_after_a_swap,
        )
        .core(),
        case(
            "ids-after-a-restart",
            "contract",
            "a pod keeps its ids when the daemon is started again",
            ids_after_a_restart,
        )
        .core(),
        case(
            "ids-are-released",
            "contract",
            "ReleaseUserNamespace may be asked twice, and of pods without ids",
            ids_are_released,
        )
        .core(),
    ]
}

const BLOCK: u32 = 65_536;

impl Bed {
    async fn ids(&self, uid: &PodUid) -> Outcome<UserNamespace> {
        self.make(uid).await?;
        let answer = self.stage.ask(AssignUserNamespace { uid: uid.clone() }).await?;
        answer.map_err(|e| Broken(format!("no ids: {e}")))
    }

    async fn has_still(&self, uid: &PodUid, ids: UserNamespace) -> Outcome {
        let now = self.ids(uid).await?;
        demand(now == ids, || format!("it has {now:?}, not {ids:?}"))
    }
}

async fn ids(bed: Bed) -> Outcome {
    let mut all: Vec<UserNamespace> = Vec::new();
    for n in 0..20 {
        let ids = bed.ids(&bed.uid(&format!("p{n}"))).await?;
        let so = ids.length >= BLOCK && ids.length % BLOCK == 0 && ids.host_id >= BLOCK;
        demand(so, || format!("{ids:?}"))?;
        let other = all.iter().find(|other| other.overlaps(&ids));
        demand(other.is_none(), || format!("{ids:?} and {other:?}"))?;
        all.push(ids);
    }
    Ok(())
}

async fn ids_twice(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    let ids = bed.ids(&uid).await?;
    bed.has_still(&uid, ids).await
}

async fn ids_after_a_crash(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    let ids = bed.ids(&uid).await?;
    bed.stage.crash().await?;
    bed.has_still(&uid, ids).await?;
    let other = bed.ids(&bed.uid("b")).await?;
    demand(!other.overlaps(&ids), || format!("another pod has {other:?}"))
}

async fn ids_after_a_swap(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    let ids = bed.ids(&uid).await?;
    bed.stage.take_over().await?;
    bed.has_still(&uid, ids).await
}

async fn ids_after_a_restart(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    let ids = bed.ids(&uid).await?;
    let bed = Bed::on(bed.stage.restart_daemon().await?);
    bed.stage.begin().await?;
    bed.has_still(&uid, ids).await?;
    bed.stage.close().await
}

async fn ids_are_released(bed: Bed) -> Outcome {
    let (uid, none) = (bed.uid("a"), bed.uid("none"));
    bed.ids(&uid).await?;
    bed.make(&none).await?;
    for uid in [&uid, &uid, &none] {
        let answer = bed.stage.ask(ReleaseUserNamespace { uid: uid.clone() }).await?;
        answer.map_err(|e| Broken(format!("{uid}: {e}")))?;
    }
    bed.ids(&uid).await.map(drop)
}
