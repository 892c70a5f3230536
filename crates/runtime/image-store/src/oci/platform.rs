//! Machines, and which image runs on which.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A kind of machine, in Go's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Platform {
    /// `linux`.
    #[serde(default)]
    pub os: String,
    /// `amd64`, `arm64`, ...
    #[serde(default)]
    pub architecture: String,
    /// `v8`, `v7`, ...; empty: none, or the usual one.
    #[serde(default, deserialize_with = "text")]
    pub variant: String,
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(from)?.unwrap_or_default())
}

impl Platform {
    /// The machine that this program was built for.
    #[must_use]
    pub fn own() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: String::new() }
    }

    /// How near an image for `offered` is to this machine, 0 the nearest; `None`: it does not run here. Newer variants run older ones, amd64 runs
    /// 386 and arm64 runs arm, as containerd has it.
    #[must_use]
    pub fn rank(&self, offered: &Self) -> Option<u32> {
        if self.os != offered.os {
            return None;
        }
        let (have, want) = (offered.level(), self.level());
        let steps = |from: u32, to: u32| from.checked_sub(to);
        match (self.architecture.as_str(), offered.architecture.as_str()) {
            (mine, theirs) if mine == theirs => steps(want, have),
            ("amd64", "386") => Some(100),
            // An arm64 machine that runs arm programs runs those of v8 and below.
            ("arm64", "arm") => steps(8, have).map(|s| 100 + s),
            _ => None,
        }
    }

    /// The variant as a number; where none is given the usual one.
    fn level(&self) -> u32 {
        let told = self.variant.strip_prefix('v').and_then(|v| v.split('.').next()?.parse().ok());
        told.unwrap_or(match self.architecture.as_str() {
            "arm" => 7,
            "arm64" => 8,
            _ => 1,
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() { Ok(()) } else { write!(f, "/{}", self.variant) }
    }
}

impl FromStr for Platform {
    type Err = String;

    /// `OS/ARCHITECTURE[/VARIANT]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match parts.as_slice() {
            [os, architecture] => (os, architecture, &""),
            [os, architecture, variant] => (os, architecture, variant),
            _ => return Err(format!("{text:?} is no platform; write linux/amd64 or linux/arm/v7")),
        };
        if *os != "linux" || architecture.is_empty() {
            return Err(format!("{text:?}: only images for linux run here; write linux/amd64 or linux/arm/v7"));
        }
        let architecture = match *architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let owned = |t: &str| t.to_owned();
        Ok(Self { os: owned(os), architecture: owned(architecture), variant: owned(variant) })
    }
}
