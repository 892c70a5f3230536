//! The one declaration of a role.

/// Declares a role. See `probe.rs` for an example with every part.
///
/// - `answers`: its messages, each with the answer, how long that may take, and what a caller does without one
///   ([`crate::Unanswered`]); `for` names the field that says which pod it is for, `plus` adds time that the message itself
///   asks for.
/// - `posts`: its tables (`Key => Row`) and single values (`value Row = initial`).
/// - `asks`: the messages that it may send; `reads`: the rows and values that it may read.
macro_rules! role {
    (
        $(#[doc = $doc:literal])*
        $role:ident in $place:ident $(, actor $actor:literal)? $(as $intake:ident)?;
        answers { $($message:ident $(for $subject:ident)? => $answer:ty, within $deadline:expr, $unanswered:ident $(, plus $plus:expr)?;)* }
        posts { $(table $key:ty => $row:ident;)* $(value $value:ident = $initial:expr;)* }
        asks { $($asked:ty),* $(,)? }
        reads { $($read:ty),* $(,)? }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $role {}

        /// Routes and boards of the role.
        #[doc(hidden)]
        #[derive(Debug)]
        #[allow(non_snake_case, reason = "each field is named after the type that it carries")]
        pub struct Desk {
            fence: $crate::fence::Fence,
            $($message: actor::Inlet<$message>,)*
            $($row: $crate::board::Board<$key, $row>,)*
            $($value: $crate::board::Value<$value>,)*
        }

        impl $crate::crew::Desk for Desk {
            fn new(fence: $crate::fence::Fence) -> Self {
                Desk {
                    fence,
                    $($message: actor::Inlet::unbound(concat!(stringify!($role), ".", stringify!($message))),)*
                    $($row: $crate::board::Board::new(stringify!($row)),)*
                    $($value: $crate::board::Value::new(stringify!($value), $initial),)*
                }
            }
            fn fence(&self) -> &$crate::fence::Fence {
                &self.fence
            }
        }

        impl $crate::crew::Role for $role {
            const NAME: &'static str = stringify!($role);
            const DECLARATION: $crate::declaration::Declaration = $crate::declaration::Declaration {
                role: stringify!($role),
                purpose: concat!($($doc),*),
                actor: concat!($($actor)?),
                intake: role!(@intake $($intake)?),
                answers: &[$($crate::declaration::MessageDeclaration {
                    name: stringify!($message),
                    answer: stringify!($answer),
                    deadline: $deadline,
                    unanswered: $crate::declaration::Unanswered::$unanswered,
                }),*],
                posts: &[
                    $($crate::declaration::RowDeclaration { name: stringify!($row), key: stringify!($key) },)*
                    $($crate::declaration::RowDeclaration { name: stringify!($value), key: "" },)*
                ],
                asks: &[$(<$asked as $crate::declaration::Named>::EDGE),*],
                reads: &[$(<$read as $crate::declaration::Named>::EDGE),*],
            };
            type Desk = Desk;

            fn desk(wiring: &$crate::wiring::Wiring) -> &Desk {
                &wiring.desks().$place
            }

            #[cfg(test)]
            #[allow(unused_variables, reason = "a role without messages and rows has no types")]
            fn each_type(types: &mut impl $crate::crew::Types) {
                $(
                    types.meet_message::<$message>();
                    types.meet::<$answer>(concat!(stringify!($message), " => ", stringify!($answer)));
                )*
                $(
                    types.meet::<$key>(concat!("key of ", stringify!($row)));
                    types.meet::<$row>(stringify!($row));
                )*
                $(types.meet::<$value>(stringify!($value));)*
            }
        }

        $(
            impl actor::Message for $message {
                type Result = $answer;
            }
            impl actor::Mail for $message {
                $(fn subject(&self) -> Option<actor::Subject> {
                    Some($crate::crew::OfPod::uid(&self.$subject))
                })?
            }
            impl $crate::crew::Letter for $message {
                type To = $role;
                const NAME: &'static str = stringify!($message);
                const UNANSWERED: $crate::declaration::Unanswered = $crate::declaration::Unanswered::$unanswered;
                const DEADLINE: std::time::Duration = $deadline;

                $(fn deadline(&self) -> std::time::Duration {
                    let plus: fn(&Self) -> std::time::Duration = $plus;
                    Self::DEADLINE + plus(self)
                })?

                fn inlet(desk: &Desk) -> &actor::Inlet<Self> {
                    &desk.$message
                }
            }
            role!(@named $message by $role);
        )*
        $(
            impl $crate::crew::TableRow for $row {
                type By = $role;
                type Key = $key;

                fn board(desk: &Desk) -> &$crate::board::Board<$key, $row> {
                    &desk.$row
                }
            }
            role!(@named $row by $role);
            impl $crate::crew::Reads<$row> for $role {}
        )*
        $(
            impl $crate::crew::SingleValue for $value {
                type By = $role;

                fn value(desk: &Desk) -> &$crate::board::Value<$value> {
                    &desk.$value
                }
            }
            role!(@named $value by $role);
            impl $crate::crew::Reads<$value> for $role {}
        )*
        $(impl $crate::crew::Asks<$asked> for $role {})*
        $(impl $crate::crew::Reads<$read> for $role {})*

        impl<A: actor::Managed $(+ actor::Handler<$message>)*> $crate::crew::Answers<$role> for A {
            #[allow(unused_variables, reason = "a role without messages has nothing to connect")]
            fn connect(actor: &actor::ActorRef<Self>, desk: &Desk) {
                $(desk.$message.connect(actor);)*
            }
        }
    };
    (@intake) => { false };
    (@intake intake) => { true };
    (@named $what:ident by $role:ident) => {
        impl $crate::declaration::Named for $what {
            const EDGE: $crate::declaration::Edge =
                $crate::declaration::Edge { role: stringify!($role), what: stringify!($what) };
        }
    };
}
