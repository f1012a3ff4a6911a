//! `tilewright emulate` in a folder.

use std::path::Path;
use std::process::Command;

/// Runs it with these arguments: exit code, standard output, standard error.
pub fn emulate(folder: &Path, arguments: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("emulate")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}
