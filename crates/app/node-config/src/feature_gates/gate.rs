//! What is known of one gate.

/// How mature a gate is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Off unless asked for.
    Alpha,
    /// May be on.
    Beta,
    /// Part of the product.
    Ga,
    /// On its way out.
    Deprecated,
}

impl Stage {
    /// As metrics tell it: empty for what is part of the product.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

/// One known gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// Name.
    pub name: &'static str,
    /// Maturity.
    pub stage: Stage,
    /// Value unless set.
    pub default: bool,
    /// Cannot be set to anything but the default.
    pub locked: bool,
}

/// Whether it is on unless set.
pub(super) enum Value {
    On,
    Off,
}

/// Whether it may be set.
pub(super) enum Lock {
    Free,
    Locked,
}

/// A row of a table.
pub(super) const fn gate(name: &'static str, stage: Stage, default: Value, lock: Lock) -> Gate {
    Gate { name, stage, default: matches!(default, Value::On), locked: matches!(lock, Lock::Locked) }
}
