//! cgroups of containers that the supervisor starts itself: made, limited, joined and removed as `runc` does it, in each hierarchy of version 1
//! that the node has below `/sys/fs/cgroup`, and in version 2 beside them; or in version 2 alone, where whoever asks has made it, with its rules for
//! devices.

mod devices;
mod entrance;
mod groups;
mod hierarchies;
mod limits;
mod resources;
mod unified;

pub(crate) use entrance::{Entrance, Opened, entrance};
pub use groups::{Groups, put_into};
pub(crate) use hierarchies::has_all;
pub use hierarchies::{Hierarchy, hierarchies_here};
pub use resources::{Resources, Rule};
