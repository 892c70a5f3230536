//! The two lines of glue that Rust's orphan rule asks of each crate.

/// Makes an actor type fit for the kernel: `supervised!(PodManager);`, or `supervised!(<T: Mail> Recorder<T>);`.
#[macro_export]
macro_rules! supervised {
    (<$($p:ident $(: $bound:path)?),+ $(,)?> $t:ty) => {
        impl<$($p $(: $bound)?),+> $crate::Supervised for $t {
            fn restarting(&mut self, ctx: &mut $crate::Ctx<Self>) {
                $crate::Ctx::rebuild(self, ctx)
            }
        }
        impl<$($p $(: $bound)?),+> $crate::Handler<$crate::Turn<$t>> for $t {
            type Result = ();
            fn handle(&mut self, turn: $crate::Turn<$t>, ctx: &mut $crate::Ctx<Self>) {
                turn.run(self, ctx)
            }
        }
    };
    ($t:ty) => {
        impl $crate::Supervised for $t {
            fn restarting(&mut self, ctx: &mut $crate::Ctx<Self>) {
                $crate::Ctx::rebuild(self, ctx)
            }
        }
        impl $crate::Handler<$crate::Turn<$t>> for $t {
            type Result = ();
            fn handle(&mut self, turn: $crate::Turn<$t>, ctx: &mut $crate::Ctx<Self>) {
                turn.run(self, ctx)
            }
        }
    };
}

/// Declares what a message is answered with: `message!(UpdatePod => ());`.
#[macro_export]
macro_rules! message {
    ($t:ty => $r:ty) => {
        impl $crate::Message for $t {
            type Result = $r;
        }
    };
}
