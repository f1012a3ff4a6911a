//! temp
#[test]
fn loads() {
    for dir in ["nvcc", "triton"] {
        let mut files: Vec<_> = std::fs::read_dir(format!("{}/tests/corpus/{dir}", env!("CARGO_MANIFEST_DIR")))
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "ptx"))
            .collect();
        files.sort();
        for f in files {
            let text = std::fs::read_to_string(&f).unwrap();
            match tilewright_emulator::Program::parse(&text) {
                Ok(_) => println!("ok {}", f.display()),
                Err(e) => {
                    println!("FAIL {}: {}", f.display(), e.to_string().lines().take(4).collect::<Vec<_>>().join("\n"))
                }
            }
        }
    }
}
