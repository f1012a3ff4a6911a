//! What blocks do together: reductions, clusters, roles, persistent launches.

mod cluster_roles;
mod clusters;
mod factors;
mod multicast;
mod persistent;
mod persistent_multicast;
mod products;
mod reductions;
mod roles;
mod split_k;
mod stages;
#[path = "../support/mod.rs"]
mod support;
mod warp_products;
