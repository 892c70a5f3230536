//! Variables by name.

/// One variable. Values are bytes: a Secret may hold any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value, already expanded.
    pub value: Vec<u8>,
}

/// Variables of a container in the order of their first definition: `envFrom`, `env`, services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub(super) vars: Vec<EnvVar>,
}

impl Environment {
    /// Value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.vars.iter().find(|v| v.name == name).map(|v| v.value.as_slice())
    }

    /// All variables.
    #[must_use]
    pub fn vars(&self) -> &[EnvVar] {
        &self.vars
    }

    /// Sets a variable, in place when it exists.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        let value = value.into();
        match self.vars.iter_mut().find(|v| v.name == name) {
            Some(var) => var.value = value,
            None => self.vars.push(EnvVar { name: name.to_owned(), value }),
        }
    }
}
