//! Calls that wait for a disk, a few at a time and never on the threads that serve. What hangs holds up its own class alone.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::{Done, RuntimeError};

/// Calls of a class at a time.
const AT_A_TIME: usize = 16;

/// Kinds of calls. None waits behind another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    /// Records, exit codes, cgroups: short, and needed by all the rest.
    State,
    /// Containers made: as long as an image is large, where it is copied.
    Making,
    /// Containers and pods removed: as long as they have files.
    Removal,
    /// The store of images.
    Images,
    /// Statistics: as long as there are files to look at, on whatever file system.
    Stats,
}

/// The door to the pool of threads that may wait.
#[derive(Clone, Debug)]
pub(crate) struct Blocking(Arc<[Arc<Semaphore>; 5]>);

impl Blocking {
    pub(crate) fn new() -> Self {
        Self(Arc::new(std::array::from_fn(|_| Arc::new(Semaphore::new(AT_A_TIME)))))
    }

    /// Runs a call that waits. It is not stopped when whoever asked goes away: what was begun is ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        class: Class,
        call: impl FnOnce() -> Done<T> + Send + 'static,
    ) -> Done<T> {
        let [state, making, removal, images, stats] = &*self.0;
        let room = match class {
            Class::State => state,
            Class::Making => making,
            Class::Removal => removal,
            Class::Images => images,
            Class::Stats => stats,
        };
        let closed = |e: &dyn std::fmt::Display| RuntimeError::Refused(format!("the runtime is ending: {e}"));
        let permit = Arc::clone(room).acquire_owned().await.map_err(|e| closed(&e))?;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            call()
        });
        task.await.map_err(|e| closed(&e))?
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[tokio::test]
    async fn what_hangs_holds_up_its_own_class_alone() {
        let (gate, shut) = std::io::pipe().expect("pipe");
        let blocking = Blocking::new();
        let hanging: Vec<_> = (0..=AT_A_TIME)
            .map(|_| {
                let (blocking, mut gate) = (blocking.clone(), gate.try_clone().expect("pipe"));
                let hangs = move || Ok(gate.read(&mut [0]).expect("end"));
                tokio::spawn(async move { blocking.run(Class::Stats, hangs).await })
            })
            .collect();
        for class in [Class::State, Class::Making, Class::Removal, Class::Images] {
            assert_eq!(blocking.run(class, || Ok(1)).await.expect("its turn"), 1, "{class:?}");
        }
        let mut one_more = std::pin::pin!(blocking.run(Class::Stats, || Ok(2)));
        assert!(futures::poll!(one_more.as_mut()).is_pending(), "no more of that class than its bound");
        drop(shut);
        assert_eq!(one_more.await.expect("its turn"), 2);
        for hung in hanging {
            hung.await.expect("ended").expect("done");
        }
    }
}
