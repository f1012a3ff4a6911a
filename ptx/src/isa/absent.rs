//! Instructions of the manual that the table does not have, so that a refusal can say where they are described.

/// The first words of such instructions with their sections. What is longer stands before what it starts with.
const ABSENT: &[(&str, &str)] = &[
    ("tex", "9.7.10.2, textures"),
    ("tld4", "9.7.10.3, textures"),
    ("txq", "9.7.10.4, textures"),
    ("istypep", "9.7.10.5, textures"),
    ("suld", "9.7.11.1, surfaces"),
    ("sust", "9.7.11.2, surfaces"),
    ("sured", "9.7.11.3, surfaces"),
    ("suq", "9.7.11.4, surfaces"),
    ("multimem", "9.7.9.14, multicast memory"),
    ("mma.sp", "9.7.14.6, sparse matrices"),
    ("wgmma.mma_async.sp", "9.7.15.6, sparse matrices"),
    ("tcgen05", "9.7.16, tensor cores of sm_100"),
    ("clusterlaunchcontrol", "9.7.13.17, sm_100"),
    ("st.bulk", "9.7.9.13, sm_100"),
    ("vset", "9.7.17, video"),
    ("vshl", "9.7.17, video"),
    ("vshr", "9.7.17, video"),
    ("vmad", "9.7.17, video"),
    ("vadd", "9.7.17, video"),
    ("vsub", "9.7.17, video"),
    ("vabsdiff", "9.7.17, video"),
    ("vmin", "9.7.17, video"),
    ("vmax", "9.7.17, video"),
];

/// Section and subject of an instruction that no form of the table has, if the manual has one.
pub(crate) fn absent(mnemonic: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(words, _)| mnemonic.starts_with(words)).map(|(_, section)| *section)
}
