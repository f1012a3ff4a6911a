//! `cargo xtask device`: what a machine with a GPU, and without Rust, needs to run everything, as a folder and as an
//! archive to carry: `tar xzf device.tar.gz && device/run.sh`.
//!
//! The programs need Linux on x86-64 with glibc 2.34 or newer: no symbol of a later version is used (`objdump -T`
//! tells).

use std::path::Path;

use crate::{Failure, cargo, kernels, root, run};

/// Largest archive, in bytes.
const LIMIT: u64 = 60 << 20;
/// The script that runs everything.
const SCRIPT: &str = include_str!("device/run.sh");
/// What the libraries of that machine reach; the same work by other means, beside kernels of the examples.
const PYTHON: [(&str, &str); 5] = [
    ("baselines.py", include_str!("device/baselines.py")),
    ("clocks.py", include_str!("device/clocks.py")),
    ("peers.py", include_str!("device/peers.py")),
    ("triton_kernels.py", include_str!("device/triton_kernels.py")),
    ("works.py", include_str!("device/works.py")),
];
/// Which kernels at which sizes.
pub(crate) const ROWS: &str = include_str!("device/rows.json");

/// Builds release binaries and puts them into `dist/device`, with the kernels and the script, and all of that into
/// `dist/device.tar.gz`.
///
/// # Errors
/// A build fails, a file cannot be written, or the archive is too large.
pub fn bundle() -> Result<(), Failure> {
    let strip = |command: &mut std::process::Command| run(command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"));
    strip(cargo().args(["build", "--release", "-p", "tilewright-examples", "--examples"]))?;
    strip(cargo().args(["build", "--release", "-p", "xtask", "--bin", "device-check"]))?;
    strip(cargo().args(["build", "--release", "-p", "tilewright-cli"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |t| root().join(t));
    let (built, dist) = (target.join("release"), root().join("dist/device"));
    if dist.exists() {
        std::fs::remove_dir_all(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
    }
    let (programs, sources, conformance) = (dist.join("bin"), dist.join("kernels"), dist.join("conformance"));
    for folder in [&programs, &sources, &conformance] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut bytes = copy(&built.join("device-check"), &programs.join("device-check"))?;
    bytes += copy(&built.join("tilewright"), &programs.join("tilewright"))?;
    for file in kernels::files(&root().join("examples"), "rs")? {
        // Files in folders below are parts of the examples.
        if file.parent() != Some(&root().join("examples")) {
            continue;
        }
        let (Some(stem), Some(name)) = (file.file_stem(), file.file_name()) else { continue };
        let program = format!("example-{}", stem.to_string_lossy());
        bytes += copy(&built.join("examples").join(stem), &programs.join(program))?;
        bytes += copy(&file, &sources.join(name))?;
    }
    for extension in ["ptx", "json"] {
        for file in kernels::files(&tilewright_conformance::folder(), extension)? {
            let Some(name) = file.file_name() else { continue };
            bytes += copy(&file, &conformance.join(name))?;
        }
    }
    let script = dist.join("run.sh");
    std::fs::write(&script, SCRIPT).map_err(|e| format!("{}: {e}", script.display()))?;
    for (name, text) in PYTHON.into_iter().chain([("rows.json", ROWS)]) {
        let file = dist.join(name);
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    // A copy keeps the permissions of its source: this one is made executable by the shell that it is for.
    run(std::process::Command::new("chmod").arg("+x").arg(&script))?;
    let archive = root().join("dist/device.tar.gz");
    run(std::process::Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(root().join("dist")).arg("device"))?;
    let packed = std::fs::metadata(&archive).map_err(|e| format!("{}: {e}", archive.display()))?.len();
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("device: {} holds {:.1} MiB", dist.display(), mebibytes(bytes));
    println!("device: {} has {:.1} MiB", archive.display(), mebibytes(packed));
    if packed > LIMIT {
        return Err(format!("the archive has {packed} bytes; at most {LIMIT} are allowed"));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<u64, Failure> {
    std::fs::copy(from, to).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The benchmark finds what it imports beside it.
    #[test]
    fn every_python_file_is_bundled() {
        let files = kernels::files(&root().join("xtask/src/device"), "py").unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_string_lossy()).collect();
        assert_eq!(names, PYTHON.map(|(name, _)| name));
    }
}
