//! Limits of clusters (CUDA programming guide, thread block clusters; driver API,
//! `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION` and `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`): one rule for
//! compiler, launcher and emulator.

use std::fmt;

/// Most blocks of a cluster on every device that has clusters.
pub const PORTABLE_CLUSTER: u32 = 8;
/// Most blocks of a cluster on a device of compute capability 9.0, for functions that allow what is not portable.
pub const LARGEST_CLUSTER: u32 = 16;

/// Why a grid cannot be launched in clusters of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterFault {
    /// An extent is 0.
    Empty {
        /// The shape in x, y, z.
        cluster: [u32; 3],
    },
    /// More blocks than a cluster can have.
    TooLarge {
        /// The shape in x, y, z.
        cluster: [u32; 3],
        /// Its blocks.
        blocks: u64,
    },
    /// The grid is not a multiple of the cluster.
    Indivisible {
        /// 0, 1, 2 for x, y, z.
        axis: usize,
        /// Blocks of the grid on this axis.
        grid: u32,
        /// Blocks of the cluster on it.
        cluster: u32,
    },
}

impl fmt::Display for ClusterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { cluster } => write!(f, "the cluster is {cluster:?}; every extent must be at least 1"),
            Self::TooLarge { cluster: [x, 1, 1], .. } => {
                write!(
                    f,
                    "a cluster of {x} blocks; the limit is {LARGEST_CLUSTER}, and {PORTABLE_CLUSTER} on every device"
                )
            }
            Self::TooLarge { cluster, blocks } => write!(
                f,
                "the cluster {cluster:?} has {blocks} blocks; the limit is {LARGEST_CLUSTER}, and {PORTABLE_CLUSTER} on every device"
            ),
            Self::Indivisible { axis, grid, cluster } => {
                let axis = ["x", "y", "z"].get(*axis).unwrap_or(&"?");
                write!(f, "the grid has {grid} blocks in {axis}, which is not a multiple of the cluster's {cluster}")
            }
        }
    }
}

/// Whether a grid can be launched in clusters of this shape, both in blocks in x, y, z.
///
/// # Errors
/// The first rule that is broken.
pub fn check_cluster(grid: [u32; 3], cluster: [u32; 3]) -> Result<(), ClusterFault> {
    if cluster.contains(&0) {
        return Err(ClusterFault::Empty { cluster });
    }
    let blocks = cluster.iter().fold(1_u64, |all, n| all.saturating_mul(u64::from(*n)));
    if blocks > u64::from(LARGEST_CLUSTER) {
        return Err(ClusterFault::TooLarge { cluster, blocks });
    }
    match (0..3).find(|axis| !grid[*axis].is_multiple_of(cluster[*axis])) {
        Some(axis) => Err(ClusterFault::Indivisible { axis, grid: grid[axis], cluster: cluster[axis] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(check_cluster([4, 1, 1], [2, 1, 1]), Ok(()));
        assert_eq!(check_cluster([16, 4, 1], [4, 4, 1]), Ok(()));
        let text = |grid, cluster| check_cluster(grid, cluster).unwrap_err().to_string();
        assert_eq!(
            text([133, 1, 1], [2, 1, 1]),
            "the grid has 133 blocks in x, which is not a multiple of the cluster's 2"
        );
        assert_eq!(text([34, 1, 1], [17, 1, 1]), "a cluster of 17 blocks; the limit is 16, and 8 on every device");
        assert_eq!(
            text([4, 8, 1], [4, 8, 1]),
            "the cluster [4, 8, 1] has 32 blocks; the limit is 16, and 8 on every device"
        );
        assert_eq!(text([4, 1, 1], [0, 1, 1]), "the cluster is [0, 1, 1]; every extent must be at least 1");
        let all = [u32::MAX; 3];
        assert!(matches!(check_cluster(all, all), Err(ClusterFault::TooLarge { .. })));
    }
}
