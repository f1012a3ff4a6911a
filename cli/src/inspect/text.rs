//! The text of `tilewright inspect`.

use super::copied::CopyAxisView;
use super::view::{self, AccessView};
use crate::source::Found;

/// A kernel; none if it was not finished.
pub fn kernel(path: &str, found: &Found<'_>) -> Option<String> {
    let info = found.kernel.info.as_ref()?;
    let mut out = format!("== {} ({path}:{})\n\n{}\n", info.name, found.line, info.explanation.trim_end());
    let entry = &found.kernel.entries.first()?.kernel;
    for stage in view::stages(info, entry, &found.kernel.stages, &[]) {
        // The explanation has the rest.
        for copy in &stage.copies {
            out.push_str(&format!("axes of {} ({} bytes of shared memory)\n", copy.name, copy.buffer_bytes));
            for CopyAxisView { name, size, stride, start, extent, box_size, element_stride, boxes } in &copy.axes {
                let strided = if *element_stride == 1 { String::new() } else { format!(" by {element_stride}") };
                out.push_str(&format!(
                    "    {name}: size {size}, stride {stride}; {extent} from {start}; boxes {boxes} × {box_size}{strided}\n"
                ));
            }
        }
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
