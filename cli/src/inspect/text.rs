//! The text of `tilewright inspect`.

use super::view::{self, AccessView};
use crate::source::Found;

/// A kernel; none if it was not finished.
pub fn kernel(path: &str, found: &Found<'_>) -> Option<String> {
    let info = found.kernel.info.as_ref()?;
    let mut out = format!("== {} ({path}:{})\n\n{}\n", info.name, found.line, info.explanation.trim_end());
    for stage in view::stages(info, &found.kernel.stages).unwrap_or_default() {
        out.push_str(&format!("accesses of {}\n", stage.name));
        for AccessView { tensor, write, guarded, indices, offset, class } in &stage.accesses {
            let what = if *write { "write" } else { "read " };
            let guard = if *guarded { ", guarded" } else { "" };
            out.push_str(&format!("    {what} {tensor}[{}]: offset {offset}, {class}{guard}\n", indices.join(", ")));
        }
    }
    out.push_str(&format!("\n{}\n", info.ptx.text.trim_end()));
    Some(out)
}
