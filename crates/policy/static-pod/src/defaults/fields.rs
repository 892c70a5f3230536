//! Defaults of single fields.

use model::core::{ObjectFieldSelector, ResourceFieldSelector};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;

const NANOS_PER_MILLI: i128 = 1_000_000;

pub(super) fn field_selector(f: &mut ObjectFieldSelector) {
    word(&mut f.api_version, "v1");
}

pub(super) fn resource_field_selector(f: &mut ResourceFieldSelector) {
    if let Some(divisor) = &mut f.divisor {
        canonical(divisor, false);
    }
}

/// Brings a quantity into the form that the API would store; one that cannot be parsed stays for validation to refuse.
pub(super) fn canonical(amount: &mut ApiQuantity, round_up_to_milli: bool) {
    let Ok(parsed) = Quantity::try_from(&*amount) else { return };
    let sub_milli = parsed.nanos() % NANOS_PER_MILLI != 0;
    *amount = if round_up_to_milli && sub_milli {
        Quantity::from_millis(parsed.milli_value()).to_api()
    } else {
        parsed.to_api()
    };
}

/// `Always` for the tag `latest`, written out or implied, else `IfNotPresent`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    let latest = match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        // An image id is no name, so it has no tag.
        None => digest.is_none() && !(name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit())),
    };
    if latest { "Always" } else { "IfNotPresent" }
}

pub(super) fn word(field: &mut Option<String>, default: &str) {
    if field.as_deref().unwrap_or_default().is_empty() {
        *field = Some(default.to_owned());
    }
}

pub(super) fn number(field: &mut Option<i32>, default: i32) {
    if field.unwrap_or(0) == 0 {
        *field = Some(default);
    }
}
