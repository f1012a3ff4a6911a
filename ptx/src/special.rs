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
        // What the driver tells a kernel, and performance counters.
        Envreg0 = "%envreg0", Envreg1 = "%envreg1", Envreg2 = "%envreg2", Envreg3 = "%envreg3", Envreg4 = "%envreg4",
        Envreg5 = "%envreg5", Envreg6 = "%envreg6", Envreg7 = "%envreg7", Envreg8 = "%envreg8", Envreg9 = "%envreg9",
        Envreg10 = "%envreg10", Envreg11 = "%envreg11", Envreg12 = "%envreg12", Envreg13 = "%envreg13", Envreg14 =
        "%envreg14", Envreg15 = "%envreg15", Envreg16 = "%envreg16", Envreg17 = "%envreg17", Envreg18 = "%envreg18",
        Envreg19 = "%envreg19", Envreg20 = "%envreg20", Envreg21 = "%envreg21", Envreg22 = "%envreg22", Envreg23 =
        "%envreg23", Envreg24 = "%envreg24", Envreg25 = "%envreg25", Envreg26 = "%envreg26", Envreg27 = "%envreg27",
        Envreg28 = "%envreg28", Envreg29 = "%envreg29", Envreg30 = "%envreg30", Envreg31 = "%envreg31",
        Pm0 = "%pm0", Pm1 = "%pm1", Pm2 = "%pm2", Pm3 = "%pm3", Pm4 = "%pm4", Pm5 = "%pm5", Pm6 = "%pm6", Pm7 =
        "%pm7",
        Pm0Wide = "%pm0_64", Pm1Wide = "%pm1_64", Pm2Wide = "%pm2_64", Pm3Wide = "%pm3_64", Pm4Wide = "%pm4_64",
        Pm5Wide = "%pm5_64", Pm6Wide = "%pm6_64", Pm7Wide = "%pm7_64",
        ReservedSmemOffsetBegin = "%reserved_smem_offset_begin", ReservedSmemOffsetEnd = "%reserved_smem_offset_end",
        ReservedSmemOffsetCap = "%reserved_smem_offset_cap", ReservedSmemOffset0 = "%reserved_smem_offset_0",
        ReservedSmemOffset1 = "%reserved_smem_offset_1",
        TotalSmemSize = "%total_smem_size", AggrSmemSize = "%aggr_smem_size", DynamicSmemSize = "%dynamic_smem_size",
        CurrentGraphExec = "%current_graph_exec",
    }
}

impl SpecialReg {
    /// The type a `mov` reads it with.
    pub const fn ty(self) -> ScalarType {
        use SpecialReg::*;
        match self {
            IsExplicitCluster => ScalarType::Pred,
            CurrentGraphExec | Gridid | Clock64 | Globaltimer | Pm0Wide | Pm1Wide | Pm2Wide | Pm3Wide | Pm4Wide
            | Pm5Wide | Pm6Wide | Pm7Wide => ScalarType::U64,
            _ => ScalarType::U32,
        }
    }

    /// Whether it says where the part of shared memory is that the system keeps.
    pub const fn is_reserved_shared(self) -> bool {
        use SpecialReg::*;
        matches!(
            self,
            ReservedSmemOffsetBegin
                | ReservedSmemOffsetEnd
                | ReservedSmemOffsetCap
                | ReservedSmemOffset0
                | ReservedSmemOffset1
        )
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
            ReservedSmemOffsetBegin
            | ReservedSmemOffsetEnd
            | ReservedSmemOffsetCap
            | ReservedSmemOffset0
            | ReservedSmemOffset1 => Requirement { version: PtxVersion::new(7, 6), target: Target::sm(80) },
            CurrentGraphExec => Requirement { version: PtxVersion::new(8, 0), target: Target::sm(50) },
            AggrSmemSize => Requirement { version: PtxVersion::new(8, 1), target: Target::sm(90) },
            _ => Requirement::ANCIENT,
        }
    }
}
