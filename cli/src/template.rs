//! `tilewright new`: a crate with a kernel, a test, and the profiles that make it quick to work with.

use std::path::{Component, Path, PathBuf};

use crate::{Output, Status};

/// The lines of `Cargo.toml` that README recommends, too.
pub const PROFILES: &str = "\
# Development builds: the emulator and the reference run many times faster optimised.
[profile.dev.package]
tilewright = { opt-level = 3 }
tilewright-emulator = { opt-level = 3 }
";

const KERNELS: &str = r#"//! Kernels of this crate. `cargo check` proves their schedules right or says what is wrong; `cargo test` runs them on
//! the emulator and needs no GPU.

use tilewright::schedule;

schedule! {
    /// z = a·x + y
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = a * x[i] + y[i];

        launch threads(256);
        schedule z {
            split i by 4 -> io, v;        // 16-byte vectors
            split io by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::{Device, Tensor};

    /// Every element is one that the equations admit.
    #[test]
    fn saxpy_is_what_its_equation_says() -> tilewright::Result<()> {
        let device = Device::best()?;
        for n in [0, 4, 1000] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let x = Tensor::from_slice(&device, &x, [n])?;
            let y = Tensor::from_slice(&device, &vec![0.5; n], [n])?;
            let mut z = Tensor::zeros(&device, [n])?;
            Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device)?;
            let reference = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.reference()?;
            reference.check("z", &z)?;
        }
        Ok(())
    }
}
"#;

const MAIN: &str = r#"use tilewright::{Device, Tensor};

fn main() -> tilewright::Result<()> {
    let device = Device::best()?; // a GPU if there is one, else the emulator
    let x = Tensor::from_slice(&device, &[1.0; 1000], [1000])?;
    let y = Tensor::from_slice(&device, &[2.0; 1000], [1000])?;
    let mut z = Tensor::zeros(&device, [1000])?;
    CRATE::Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device)?;
    println!("{}: z[0] = {}", device.name(), z.to_vec()?[0]);
    Ok(())
}
"#;

/// Makes a crate in a folder that is not there yet. `tilewright` is the folder of that crate, or of its repository, if
/// it is not to come from the registry.
pub fn new(folder: &str, tilewright: Option<&str>) -> Output {
    let path = Path::new(folder);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_name(name) {
        return Output::usage(format!("`{name}` is no name of a crate: letters, digits, `-` and `_`, first a letter"));
    }
    if path.exists() {
        return Output::usage(format!("{folder} is there already"));
    }
    let dependency = match tilewright.map(|given| found(path, given)).transpose() {
        Ok(dependency) => dependency,
        Err(message) => return Output::usage(message),
    };
    let files = files(name, dependency.as_deref());
    for (file, text) in &files {
        let file = path.join(file);
        let written = file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&file, text));
        if let Err(error) = written {
            return Output::usage(format!("{}: {error}", file.display()));
        }
    }
    let list: String = files.iter().map(|(file, _)| format!("    {folder}/{file}\n")).collect();
    let text = format!("{list}next: `cd {folder}`, then `cargo test` and `cargo run`\n");
    Output { text, errors: String::new(), status: Status::Good }
}

/// The folder of the crate `tilewright` as the manifest in `folder` has it: as it is given, if that is right from the
/// new crate; from here, as shells mean it, it is made absolute.
fn found(folder: &Path, given: &str) -> Result<String, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    let bases = [absolute(folder)?, absolute(Path::new("."))?];
    for (n, base) in bases.iter().enumerate() {
        for place in [PathBuf::from(given), Path::new(given).join("runtime")] {
            let at = joined(base, &place);
            if is_tilewright(&at) {
                return Ok(if n == 0 { place } else { at }.display().to_string());
            }
        }
    }
    let [first, second] = bases.map(|base| joined(&base, Path::new(given)).display().to_string());
    Err(format!("the crate `tilewright` is neither in {first} nor in {second}"))
}

/// A path from a folder that need not be there.
fn joined(base: &Path, path: &Path) -> PathBuf {
    let mut all = base.to_path_buf();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(all.pop()),
            Component::CurDir => {}
            other => all.push(other),
        }
    }
    all
}

fn is_tilewright(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "name = \"tilewright\""))
}

fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word)
}

/// The files of such a crate.
fn files(name: &str, tilewright: Option<&str>) -> [(&'static str, String); 4] {
    let version = env!("CARGO_PKG_VERSION");
    let dependency = match tilewright {
        Some(path) => format!("{{ path = {path:?} }}"),
        None => format!("{version:?}"),
    };
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.88\"\n\n\
         [dependencies]\ntilewright = {dependency}\n\n{PROFILES}"
    );
    [
        ("Cargo.toml", manifest),
        ("src/lib.rs", KERNELS.to_owned()),
        ("src/main.rs", MAIN.replace("CRATE", &name.replace('-', "_"))),
        (".gitignore", "/target\n".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    #[test]
    fn the_template_is_checked() {
        let [(_, manifest), (_, kernels), (_, main), _] = files("my-kernels", Some("../runtime"));
        assert!(manifest.contains("tilewright = { path = \"../runtime\" }"), "{manifest}");
        assert!(main.contains("my_kernels::Saxpy"), "{main}");
        let source = SourceFile::parse("lib.rs", &kernels).expect("Rust");
        assert_eq!((source.kernels().count(), source.findings().text.as_str()), (1, ""));
    }

    #[test]
    fn readme_has_the_same_profiles() {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        let readme = std::fs::read_to_string(readme).expect("README.md");
        assert!(readme.contains(PROFILES), "README.md recommends other profiles than `tilewright new`");
    }

    #[test]
    fn names_are_those_of_crates() {
        for (name, fits) in
            [("a", true), ("my-kernels_2", true), ("", false), ("2d", false), ("a b", false), ("..", false)]
        {
            assert_eq!(is_name(name), fits, "{name}");
        }
    }
}
