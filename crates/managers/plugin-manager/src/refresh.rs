//! What a driver says of this node is asked for again: from time to time, where its CSIDriver object wants that, and when somebody
//! needs it now (node-and-resources 6.13).

use std::sync::Arc;
use std::time::Duration;

use actor::{AsyncContext, Ctx, Deferred, Handler};
use contract::plugin::{CsiDriver, RefreshCsiDriver, RefreshError};
use futures::StreamExt;
use futures::stream::BoxStream;
use ports::api::{Followed, Kind, Selection};
use ports::csi::CsiError;

use crate::actor::PluginManager;
use crate::csi_handler::node_info;
use crate::csi_node::DriverInfo;
use crate::periods::Refreshes;

/// A stream that ended against its promise is opened again after this.
const REOPEN: Duration = Duration::from_secs(1);

/// What came of a try: of which registration, and what the driver said.
type Refreshed = Result<(u64, DriverInfo), String>;

impl PluginManager {
    /// Has a timer for each driver that is registered and wants to be asked again, and for no other.
    pub(crate) fn keep_refreshing(&mut self, ctx: &mut Ctx<Self>) {
        let registered = self.drivers.snapshot();
        if !registered.is_empty() && !std::mem::replace(&mut self.refreshes.following, true) {
            self.follow_objects(ctx);
        }
        let (periods, Refreshes { timers, .. }) = (self.refreshes.periods(), &mut self.refreshes);
        timers.retain(|name, (period, timer)| {
            let stays = registered.contains_key(name) && periods.get(name) == Some(period);
            if !stays {
                ctx.cancel_future(*timer);
            }
            stays
        });
        for (name, period) in periods.into_iter().filter(|(name, _)| registered.contains_key(name)) {
            timers
                .entry(name.clone())
                .or_insert_with(|| (period, ctx.every(period, move |act, ctx| act.refresh_in_time(&name, ctx))));
        }
    }

    fn follow_objects(&mut self, ctx: &mut Ctx<Self>) {
        let Some(api) = &self.deps.api else { return };
        let all = Selection { kind: Kind::CsiDriver, namespace: None, field_selector: String::new() };
        Self::pump(api.follow(all), ctx);
    }

    fn pump(mut steps: BoxStream<'static, Followed>, ctx: &mut Ctx<Self>) {
        ctx.run(async move { (steps.next().await, steps) }, |act: &mut Self, (step, steps), ctx| match step {
            Some(step) => {
                act.refreshes.apply(step);
                act.show_objects();
                act.keep_refreshing(ctx);
                Self::pump(steps, ctx);
            }
            None => {
                tracing::warn!("the watch of the CSIDriver objects ended, it is opened again");
                ctx.after(REOPEN, Self::follow_objects);
            }
        });
    }

    /// Shows the objects of drivers that are registered to who uses these.
    pub(crate) fn show_objects(&self) {
        for (name, row) in self.drivers.snapshot() {
            let object = self.refreshes.objects.get(&name).cloned();
            if row.object != object {
                self.drivers.post(name, Arc::new(CsiDriver { object, ..(*row).clone() }));
            }
        }
    }

    fn refresh_in_time(&mut self, name: &str, ctx: &mut Ctx<Self>) {
        if !self.refreshes.under_way.insert(name.to_owned()) {
            return;
        }
        let (work, of) = (self.refresh(name, ctx), name.to_owned());
        ctx.run(work, move |act: &mut Self, done, _| {
            act.refreshes.under_way.remove(&of);
            if let Err(error) = act.refreshed(&of, done) {
                tracing::warn!(driver = of, %error, "the driver is not asked again what it says of this node");
            }
        });
    }

    /// Asks a driver, and tells the API server.
    fn refresh(&self, name: &str, ctx: &Ctx<Self>) -> impl Future<Output = Refreshed> + 'static {
        let (deps, drivers, turn, effects) =
            (self.deps.clone(), self.drivers.clone(), self.turn.clone(), ctx.effects());
        let (requests, name) = (self.requests(), name.to_owned());
        async move {
            effects.hit("refresh").await;
            let unknown = || CsiError::NotRegistered(name.clone()).to_string();
            let requests = requests.ok_or("error getting kube client")?;
            let row = drivers.get(&name).ok_or_else(unknown)?;
            let said = node_info(&*deps.csi, &name, &row.endpoint).await;
            let said = said.map_err(|e| format!("failed to get NodeGetInfo from driver {name:?}: {e}"))?;
            let info = DriverInfo::new(&name, said);
            let _mine = turn.lock().await;
            // What is said of one that went meanwhile is taken back.
            let still = drivers.get(&name).is_some_and(|now| now.generation == row.generation);
            if !still {
                return Err(unknown());
            }
            let told = requests.install(&info).await;
            told.map_err(|e| format!("failed to update driver {name:?}: {e}"))?;
            Ok((row.generation, info))
        }
    }

    fn refreshed(&mut self, name: &str, done: Refreshed) -> Result<(), RefreshError> {
        let result = done.as_ref().map(drop).map_err(|e| RefreshError { message: e.clone() });
        let Some(row) = self.drivers.get(&name.to_owned()) else { return result };
        let mut new = (*row).clone();
        match done {
            Ok((generation, info)) if generation == row.generation => {
                (new.node_id, new.max_volumes, new.topology) = (info.node_id, info.max_volumes, info.topology);
                new.error = None;
            }
            // Its registration asked it later.
            Ok(_) => {}
            Err(error) => new.error = Some(error),
        }
        if new != *row {
            self.drivers.post(name.to_owned(), Arc::new(new));
        }
        result
    }
}

impl Handler<RefreshCsiDriver> for PluginManager {
    type Result = Deferred<Self, Result<(), RefreshError>>;

    fn handle(&mut self, RefreshCsiDriver { driver }: RefreshCsiDriver, ctx: &mut Ctx<Self>) -> Self::Result {
        Deferred::then(self.refresh(&driver, ctx), move |act: &mut Self, done, _| act.refreshed(&driver, done))
    }
}
