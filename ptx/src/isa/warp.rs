//! Exchange and agreement between the threads of a warp (9.7.9.6, 9.7.13.7 onwards).

family! {
    /// Operations of a warp.
    Warp {
        /// Exchange of registers.
        Shfl: "9.7.9.6", None, Mask, ["shfl.sync.<up|down|bfly|idx>.b32 d[|p]:b32, a:b32, b:b32, c:b32, m:b32"];
        /// Agreement on a predicate.
        Vote: "9.7.13.9", None, Mask, [
            "vote.sync.<all|any|uni>.pred d:pred, !a, m:b32",
            "vote.sync.ballot.b32 d:b32, !a, m:b32",
            "vote.ballot.sync.b32 d:b32, !a, m:b32",
        ];
        /// Threads with the same value.
        Match: "9.7.13.10", None, Mask, [
            "match.any.sync.<b32|b64> d:b32, a:T0, m:b32",
            "match.all.sync.<b32|b64> d[|p]:b32, a:T0, m:b32",
        ];
        /// Threads that execute this instruction now.
        Activemask: "9.7.13.11", None, None, ["activemask.b32 d"];
        /// Reduction over the warp.
        Redux: "9.7.13.12", None, Mask, [
            "redux.sync.<add|min|max>.<u32|s32> d, a, m:b32 @7.0/80",
            "redux.sync.<and|or|xor>.b32 d, a, m:b32 @7.0/80",
        ];
        /// Election of one thread.
        Elect: "9.7.13.15", None, Mask, ["elect.sync d|p:b32, m:b32 @8.0/90"];
    }
}
