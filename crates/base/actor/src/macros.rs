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

/// Declares what a message is answered with: `message!(Resync => ());`. One that is for one subject of many says for whom:
/// `message!(ResyncPod => (), for |m| m.uid.as_str().into());`.
#[macro_export]
macro_rules! message {
    ($t:ty => $r:ty $(, for $subject:expr)?) => {
        impl $crate::Message for $t {
            type Result = $r;
        }
        impl $crate::Mail for $t {
            $(fn subject(&self) -> Option<$crate::Subject> {
                let subject: fn(&Self) -> $crate::Subject = $subject;
                Some(subject(self))
            })?
        }
    };
}
