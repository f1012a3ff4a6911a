//! Special registers (PTX manual, part 10).

use crate::types::{ScalarType, spelled};
use crate::version::{PtxVersion, Requirement, Target};

spelled! {
    /// A read-only special register. The vector forms (`%tid` as a whole) are not supported.
    SpecialReg {
        TidX = "%tid.x", TidY = "%tid.y", TidZ = "%tid.z",
        NtidX = "%ntid.x", NtidY = "%ntid.y", NtidZ = "%ntid.z",
        CtaidX = "%ctaid.x", CtaidY = "%ctaid.y", CtaidZ = "%ctaid.z",
        NctaidX = "%nctaid.x", NctaidY = "%nctaid.y", NctaidZ = "%nctaid.z",
        ClusteridX = "%clusterid.x", ClusteridY = "%clusterid.y", ClusteridZ = "%clusterid.z",
        NclusteridX = "%nclusterid.x", NclusteridY = "%nclusterid.y", NclusteridZ = "%nclusterid.z",
        ClusterCtaidX = "%cluster_ctaid.x", ClusterCtaidY = "%cluster_ctaid.y", ClusterCtaidZ = "%cluster_ctaid.z",
        ClusterNctaidX = "%cluster_nctaid.x", ClusterNctaidY = "%cluster_nctaid.y", ClusterNctaidZ = "%cluster_nctaid.z",
        ClusterCtarank = "%cluster_ctarank", ClusterNctarank = "%cluster_nctarank",
        IsExplicitCluster = "%is_explicit_cluster",
        Laneid = "%laneid", Warpid = "%warpid", Nwarpid = "%nwarpid", Smid = "%smid", Nsmid = "%nsmid", Gridid = "%gridid",
        LanemaskEq = "%lanemask_eq", LanemaskLe = "%lanemask_le", LanemaskLt = "%lanemask_lt",
        LanemaskGe = "%lanemask_ge", LanemaskGt = "%lanemask_gt",
        Clock = "%clock", ClockHi = "%clock_hi", Clock64 = "%clock64",
        Globaltimer = "%globaltimer", GlobaltimerLo = "%globaltimer_lo", GlobaltimerHi = "%globaltimer_hi",
        TotalSmemSize = "%total_smem_size", AggrSmemSize = "%aggr_smem_size", DynamicSmemSize = "%dynamic_smem_size",
    }
}

impl SpecialReg {
    /// The type a `mov` reads it with.
    pub const fn ty(self) -> ScalarType {
        use SpecialReg::*;
        match self {
            IsExplicitCluster => ScalarType::Pred,
            Gridid | Clock64 | Globaltimer => ScalarType::U64,
            _ => ScalarType::U32,
        }
    }

    /// Lowest version and target that have it.
    pub const fn requirement(self) -> Requirement {
        use SpecialReg::*;
        match self {
            ClusteridX | ClusteridY | ClusteridZ | NclusteridX | NclusteridY | NclusteridZ | ClusterCtaidX
            | ClusterCtaidY | ClusterCtaidZ | ClusterNctaidX | ClusterNctaidY | ClusterNctaidZ | ClusterCtarank
            | ClusterNctarank | IsExplicitCluster => {
                Requirement { version: PtxVersion::new(7, 8), target: Target::sm(90) }
            }
            AggrSmemSize => Requirement { version: PtxVersion::new(8, 1), target: Target::sm(90) },
            _ => Requirement::ANCIENT,
        }
    }
}
