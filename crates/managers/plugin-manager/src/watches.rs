//! Watches of the folder and of those below it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use actor::{AsyncContext, Ctx};
use futures::StreamExt;
use futures::stream::ReadyChunks;
use ports::watch::{Change, Changes};

use crate::actor::PluginManager;

/// Changes that are taken at once.
const CHUNK: usize = 64;
/// Changes are gathered for this long, however many come.
const GATHER: Duration = Duration::from_millis(100);

impl PluginManager {
    /// Watches these folders and no others. What cannot be watched is seen by the next look all the same. Whether one is new:
    /// what happened in it before is not told.
    pub(crate) fn watch(&mut self, folders: &BTreeSet<PathBuf>, ctx: &mut Ctx<Self>) -> bool {
        let gone: Vec<PathBuf> = self.watches.keys().filter(|f| !folders.contains(*f)).cloned().collect();
        for folder in gone {
            if let Some(handle) = self.watches.remove(&folder) {
                ctx.cancel_future(handle);
            }
        }
        let mut new = false;
        for folder in folders {
            if self.watches.contains_key(folder) {
                continue;
            }
            match self.deps.watch.start(folder) {
                Ok(changes) => {
                    new = true;
                    self.follow(folder.clone(), changes.ready_chunks(CHUNK), ctx);
                }
                Err(error) => tracing::debug!(folder = %folder.display(), %error, "it cannot be watched"),
            }
        }
        new
    }

    fn follow(&mut self, folder: PathBuf, mut changes: ReadyChunks<Changes>, ctx: &mut Ctx<Self>) {
        let next = async move { (changes.next().await, changes) };
        let of = folder.clone();
        let handle = ctx.run(next, move |act: &mut Self, (told, changes), ctx| {
            ctx.fault_point("changed");
            act.watches.remove(&of);
            if told.is_some_and(|told| told.iter().all(is_good)) {
                act.follow(of, changes, ctx);
            }
            act.look_soon(ctx);
        });
        self.watches.insert(folder, handle);
    }

    fn look_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.gathering, true) {
            ctx.after(GATHER, |act, ctx| {
                act.gathering = false;
                act.look(ctx);
            });
        }
    }
}

/// Whether the watch still is one.
fn is_good(told: &io::Result<Change>) -> bool {
    !matches!(told, Err(_) | Ok(Change::PathGone))
}
