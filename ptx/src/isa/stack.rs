//! The thread's stack (9.7.17).

family! {
    /// Room on the stack whose size is known only when the kernel runs.
    Stack {
        /// Address of fresh room in local memory; it lives as long as the function.
        Alloca: "9.7.17.3", None, None, ["alloca.<u32|u64> d, a, #n? @7.3/52"];
        /// The stack's top.
        Stacksave: "9.7.17.1", None, None, ["stacksave.<u32|u64> d @7.3/52"];
        /// Back to an earlier top.
        Stackrestore: "9.7.17.2", None, None, ["stackrestore.<u32|u64> a! @7.3/52"];
    }
}
