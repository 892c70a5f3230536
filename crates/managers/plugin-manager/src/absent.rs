//! Drivers that went while no daemon was there to see it: what was said of them is taken back.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::actor::PluginManager;
use crate::csi_handler::{CSI_PLUGIN, take_back};
use crate::world::Phase;
use actor::Ctx;

/// Drivers have this long to come back after the start, of the machine perhaps. A kubelet waits for ever.
const COME_BACK: Duration = Duration::from_secs(5 * 60);

impl PluginManager {
    /// Looks, after a while, whether the API server knows of drivers that are not here.
    pub(crate) fn forget_absent_later(&mut self, ctx: &mut Ctx<Self>) {
        ctx.after(COME_BACK, Self::forget_absent);
    }

    fn forget_absent(&mut self, ctx: &mut Ctx<Self>) {
        let Some(requests) = self.requests() else { return };
        // A socket that has not said its name may be that of any driver.
        let may_be_one = |kind: &str| kind.is_empty() || kind == CSI_PLUGIN;
        if !self.initialized || self.sockets.values().any(|s| s.phase != Phase::Registered && may_be_one(&s.row.kind)) {
            return self.forget_absent_later(ctx);
        }
        let (crew, turn, rows, effects) = (self.crew.clone(), self.turn.clone(), self.rows.clone(), ctx.effects());
        let work = async move {
            effects.hit("leave").await;
            let _mine = turn.lock().await;
            let named = requests.named().await.map_err(|e| e.to_string())?;
            // Whoever came meanwhile has a row before the API server is told of it.
            let rows = rows.snapshot();
            let here: BTreeSet<String> =
                rows.values().filter(|row| may_be_one(&row.kind)).map(|row| row.name.clone()).collect();
            for driver in named.into_iter().filter(|name| !here.contains(name)) {
                tracing::info!(driver, "the driver has not come back, it is forgotten");
                take_back(&requests, &crew, &effects, driver).await?;
            }
            Ok(())
        };
        ctx.run(work, |act: &mut Self, done: Result<(), String>, ctx| {
            if let Err(error) = done {
                tracing::warn!(error, "drivers that are gone are not forgotten yet");
                act.forget_absent_later(ctx);
            }
        });
    }
}
