//! The examples: what they compile to, print, read, write and become.

mod costs;
mod counters;
mod golden;
mod ladder;
mod machine_code;
mod results;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use rayon::prelude::*;
use tilewright::kernel::info::KernelInfo;
use tilewright_cli::source::SourceFile;

/// The finished kernels of each example, by the name of its file without extension, without errors or warnings.
type Examples = BTreeMap<String, Vec<KernelInfo>>;

/// Compiled now.
fn compiled() -> Examples {
    let of_file = |path: &Path| {
        let source = SourceFile::read(&path.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
        let findings = source.findings();
        assert_eq!((findings.errors, findings.warnings), (0, 0), "{}", findings.text);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (stem, source.kernels().map(|found| found.kernel.info.clone().expect("no error, so a kernel")).collect())
    };
    let paths = xtask::kernels::files(&xtask::root().join("examples"), "rs").expect("the examples");
    paths.par_iter().map(|path| of_file(path)).collect()
}

/// Compiled once for all tests here. Never to be asked for first by a task of rayon, since its threads compile them.
fn examples() -> &'static Examples {
    static EXAMPLES: LazyLock<Examples> = LazyLock::new(compiled);
    &EXAMPLES
}

/// The kernels of one example.
fn example(name: &str) -> &'static [KernelInfo] {
    examples().get(name).unwrap_or_else(|| panic!("no example `{name}`"))
}
