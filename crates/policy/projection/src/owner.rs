//! Who owns files that only one user may read.

use model::core::Pod;
use model::pod;

#[cfg(test)]
mod tests;

/// The one user that every container of the pod runs as, where there is one (node-and-resources 6.10): tokens belong to it.
/// Ephemeral containers do not count.
#[must_use]
pub fn fs_user(pod: &Pod) -> Option<u32> {
    let of_pod = pod.spec.as_ref().and_then(|s| s.security_context.as_ref()).and_then(|c| c.run_as_user);
    let mut found = None;
    for c in pod::init_containers(pod).iter().chain(pod::regular_containers(pod)) {
        let user = c.security_context.as_ref().and_then(|s| s.run_as_user).or(of_pod)?;
        if found.is_some_and(|f| f != user) {
            return None;
        }
        found = Some(user);
    }
    found.and_then(|user| u32::try_from(user).ok())
}
