//! An API server that lists no pods where there were some: did it lose its state?

use std::time::Duration;

use actor::Ctx;
use contract::config_sources::ApiSourceView;
use model::Timestamp;
use model::core::Node;
use ports::api::{ApiExt, Followed};

use super::{ApiSource, DOUBT};

/// A server that lost the Node is asked for it this often.
const CHECK_AGAIN: Duration = Duration::from_secs(20);
impl ApiSource {
    /// A server that lists nothing where there were pods has either lost its state, or really means it. Whether it knows
    /// this node tells: until it does, its empty list is not believed and the pods run on.
    pub(super) fn is_doubtful(&mut self, step: &Followed, pods: usize, ctx: &mut Ctx<Self>) -> bool {
        match step {
            Followed::All(all) if all.is_empty() && pods > 0 => {
                if !std::mem::replace(&mut self.server.doubted, true) {
                    self.check_node(ctx);
                }
                true
            }
            Followed::Failed(_) => self.server.doubted,
            Followed::All(_) | Followed::Applied(_) | Followed::Deleted(_) => {
                if std::mem::take(&mut self.server.doubted) && !matches!(step, Followed::All(_)) {
                    // It has pods again: its empty list counts, and then this.
                    let all = self.set.apply(Followed::All(Vec::new()), Timestamp(ctx.clock().unix_nanos()));
                    self.note(&all);
                }
                false
            }
        }
    }

    fn check_node(&mut self, ctx: &mut Ctx<Self>) {
        let (api, name) = (self.deps.api.clone(), self.config.node_name.clone());
        let work = async move { api.get::<Node>(None, &name).await };
        ctx.run(work, |act: &mut Self, answer, ctx| {
            if !act.server.doubted {
                return;
            }
            match answer {
                Ok(_) => {
                    act.server.doubted = false;
                    act.publish(ApiSourceView { pods: 0, ..(*act.view.get()).clone() });
                    act.apply(vec![Followed::All(Vec::new())], ctx);
                }
                Err(error) => {
                    if error.is_not_found() {
                        tracing::warn!("{DOUBT}");
                    }
                    ctx.after(CHECK_AGAIN, |act, ctx| {
                        if act.server.doubted {
                            act.check_node(ctx);
                        }
                    });
                }
            }
        });
    }
}
