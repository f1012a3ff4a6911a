//! Control flow (9.7.12) and what concerns the thread as a whole (9.7.19).

family! {
    /// Branches, calls, exits.
    Control {
        /// Branch.
        Bra: "9.7.12.3", Control, None, ["bra[.uni] t:label"];
        /// Branch to a label of a table.
        BrxIdx: "9.7.12.4", Control, None, ["brx.idx[.uni] a:u32!, t:table"];
        /// Call.
        Call: "9.7.12.5", Control, None, [
            "call[.uni] f:callee",
            "call[.uni] f:callee, a:args, p:table?",
            "call[.uni] d:rets, f:callee, a:args, p:table?",
            "call[.uni] d:rets, f:callee",
        ];
        /// Return from a function; from a kernel, exit.
        Ret: "9.7.12.6", Control, None, ["ret[.uni]"];
        /// End of the thread.
        Exit: "9.7.12.7", Control, None, ["exit"];
        /// Abort of the kernel with an error.
        Trap: "9.7.19.4", Control, None, ["trap"];
        /// Breakpoint.
        Brkpt: "9.7.19.1", Control, None, ["brkpt"];
        /// Suspension for about this many nanoseconds.
        Nanosleep: "9.7.19.2", None, None, ["nanosleep.u32 a:u32"];
        /// Profiler event.
        Pmevent: "9.7.19.3", None, None, ["pmevent #n:0..15"];
        /// Change of the number of registers of the warpgroup.
        Setmaxnreg: "9.7.19.5", None, Aligned, ["setmaxnreg.<inc|dec>.sync.aligned.u32 #n:24..256/8 @8.0/90a"];
    }
}
