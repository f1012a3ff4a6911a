//! What the log of NVIDIA's assembler tells, whoever runs it: `ptxas`, or the driver when it loads PTX.

/// The lines of a log that tell of speed that was lost, in their order: products that wait for each other (C7509 to
/// C7515) and registers of roles that are not honoured (C7504 to C7508).
pub fn losses(log: &str) -> impl Iterator<Item = &str> {
    // Codes of this family are about performance. Text without a code is that of drivers which leave codes out.
    log.lines().map(str::trim).filter(|line| line.contains("(C75") || line.contains("Potential Performance Loss"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_found_among_other_lines() {
        let [serialized, ignored] = [
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to …",
            "info : (C7508) 'setmaxnreg' ignored; unable to determine register count at entry",
        ];
        let log = format!(
            "ptxas info    : 0 bytes gmem\n{serialized}\nptxas info    : Used 168 registers\n  {ignored}\nptxas fatal   : (C7600)"
        );
        assert_eq!(losses(&log).collect::<Vec<_>>(), [serialized, ignored]);
        assert_eq!(losses("").count(), 0);
    }
}
