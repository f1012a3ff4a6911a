//! What blocks do together: reductions, clusters, roles, persistent launches.

mod alternate;
mod attention;
mod attention8;
mod cluster_roles;
mod clusters;
mod data_ranges;
mod factors;
mod filled;
mod means;
mod multicast;
mod norms;
mod online;
mod persistent;
mod persistent_multicast;
mod places;
mod places_of_copies;
mod products;
mod reductions;
mod roles;
mod scatter;
mod split_k;
mod stages;
mod stored_matrices;
#[path = "../support/mod.rs"]
mod support;
mod warp_products;
mod written_factors;
