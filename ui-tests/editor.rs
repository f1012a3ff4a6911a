//! What an editor shows: rust-analyzer, driven over the language server protocol.
//!
//! `RUST_ANALYZER` names its program, for example after `cargo install --locked ra_ap_rust-analyzer --version 0.0.330`
//! (0.0.349 does not build with Rust 1.95); without it nothing is tested, and a line says so. The times are printed,
//! not tested: `cargo test --test editor -- --nocapture`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest wait for one answer: the first includes a build of the macro.
const PATIENCE: Duration = Duration::from_secs(600);

const MAIN: &str = "mod wrong;

tilewright::schedule! {
    /// Scales and adds.
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N]) {
        z[i] = a * x[i] + y[i];
        schedule z { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {
    println!(\"{}\", Saxpy::KERNEL.ptx.text.len());
}
";

const WRONG: &str = "tilewright::schedule! {
    pub kernel Shift(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i + 1];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}
";

/// A crate of a user, in a folder that is removed afterwards.
struct Crate(PathBuf);

impl Crate {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("tilewright-editor-{}", std::process::id()));
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
        let runtime = runtime.canonicalize().expect("the runtime is beside this crate");
        let manifest = format!(
            "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\ntilewright = {{ path = \
             {runtime:?}, default-features = false }}\n[workspace]\n"
        );
        std::fs::create_dir_all(root.join("src")).expect("a folder for the crate");
        for (file, text) in [("Cargo.toml", manifest.as_str()), ("src/main.rs", MAIN), ("src/wrong.rs", WRONG)] {
            std::fs::write(root.join(file), text).expect("a file of the crate");
        }
        Crate(root)
    }

    fn uri(&self, file: &str) -> String {
        format!("file://{}/{file}", self.0.display())
    }
}

impl Drop for Crate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A language server and what it said.
struct Server {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    requests: u64,
    /// It has loaded the crate.
    quiet: bool,
    /// The newest diagnostics of `wrong.rs`.
    diagnostics: Vec<Value>,
}

impl Server {
    fn start(program: &str) -> Self {
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("RUST_ANALYZER is {program}: {error}"));
        let (input, output) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Server { process, input, messages, requests: 0, quiet: false, diagnostics: Vec::new() }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("rust-analyzer runs");
        self.input.flush().expect("rust-analyzer runs");
    }

    /// Takes one message in; whether one came in time.
    fn receive(&mut self, patience: Duration) -> Option<Value> {
        let message = match self.messages.recv_timeout(patience) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => panic!("rust-analyzer ended"),
        };
        match message["method"].as_str() {
            Some("experimental/serverStatus") => self.quiet = message["params"]["quiescent"] == true,
            Some("textDocument/publishDiagnostics")
                if message["params"]["uri"].as_str().is_some_and(|uri| uri.ends_with("wrong.rs")) =>
            {
                self.diagnostics = message["params"]["diagnostics"].as_array().cloned().unwrap_or_default();
            }
            // It asks to register something or to show progress, and may.
            Some(_) if !message["id"].is_null() => self.send(json!({ "id": message["id"], "result": null })),
            _ => {}
        }
        Some(message)
    }

    /// The answer to a request, and how long it took.
    fn ask(&mut self, method: &str, params: Value) -> (Value, Duration) {
        self.requests += 1;
        let (id, start) = (self.requests, Instant::now());
        self.send(json!({ "id": id, "method": method, "params": params }));
        while start.elapsed() < PATIENCE {
            if let Some(message) = self.receive(PATIENCE)
                && message["id"] == id
                && message["method"].is_null()
            {
                return (message["result"].clone(), start.elapsed());
            }
        }
        panic!("no answer to {method}");
    }

    /// Waits until something is the case; how long it took.
    fn wait(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "never: {what}; the diagnostics are {:#?}", self.diagnostics);
            self.receive(Duration::from_millis(20));
        }
        start.elapsed()
    }

    /// Whether what rust-analyzer found by itself, and not the compiler, is at the start of the wrong index.
    fn shows_mistake(&self) -> bool {
        self.diagnostics.iter().any(|found| {
            found["source"] == "rust-analyzer"
                && found["message"].as_str().is_some_and(|text| text.contains("[TW0901]"))
                && found["range"]["start"] == json!({ "line": 2, "character": 15 })
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One message, or none at the end.
fn message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", number)) => length = number.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut text = vec![0; length];
    output.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[test]
fn rust_analyzer_shows_mistakes_and_knows_the_struct() {
    let Ok(program) = std::env::var("RUST_ANALYZER") else {
        println!("skipped: RUST_ANALYZER does not name rust-analyzer");
        return;
    };
    let user = Crate::new();
    let mut server = Server::start(&program);
    let capabilities = json!({
        "experimental": { "serverStatusNotification": true },
        "textDocument": { "hover": { "contentFormat": ["markdown"] } },
    });
    let options = json!({ "cachePriming": { "enable": false } });
    let root = user.uri("");
    let start = json!({ "rootUri": root, "capabilities": capabilities, "initializationOptions": options });
    server.ask("initialize", start);
    server.send(json!({ "method": "initialized", "params": {} }));
    for (file, text) in [("src/main.rs", MAIN), ("src/wrong.rs", WRONG)] {
        let document = json!({ "uri": user.uri(file), "languageId": "rust", "version": 1, "text": text });
        server.send(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
    }
    let loading = server.wait("the crate is loaded", |server| server.quiet);
    let first = server.wait("the mistake is shown", Server::shows_mistake);
    println!("loaded in {loading:.1?}, the mistake shown {first:.1?} later");

    let use_of = MAIN.lines().position(|line| line.contains("Saxpy::")).expect("it is used");
    let column = MAIN.lines().nth(use_of).and_then(|line| line.find("Saxpy::")).expect("it is used");
    let at = |character: usize| {
        json!({ "textDocument": { "uri": user.uri("src/main.rs") },
                "position": { "line": use_of, "character": character } })
    };
    let (hover, took) = server.ask("textDocument/hover", at(column + 1));
    let text = hover["contents"]["value"].as_str().unwrap_or_default();
    assert!(
        text.contains("pub struct Saxpy") && text.contains("pub x: ") && text.contains("Scales and adds."),
        "{hover}"
    );
    println!("hover: {took:.1?}");

    let (found, took) = server.ask("textDocument/completion", at(column + "Saxpy::".len()));
    let items = found["items"].as_array().or(found.as_array()).cloned().unwrap_or_default();
    let labels: Vec<&str> = items.iter().filter_map(|item| item["label"].as_str()).collect();
    for wanted in ["KERNEL", "launch", "reference"] {
        assert!(labels.iter().any(|label| label.starts_with(wanted)), "no {wanted} among {labels:?}");
    }
    println!("completion: {took:.1?}");

    let right = WRONG.replace("i + 1", "i");
    for (version, text) in [(2, right.as_str()), (3, WRONG), (4, right.as_str())] {
        let document = json!({ "uri": user.uri("src/wrong.rs"), "version": version });
        let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        server.send(json!({ "method": "textDocument/didChange", "params": change }));
        let took =
            server.wait("the diagnostics are those of the edit", |server| server.shows_mistake() == (version == 3));
        println!("edit {}: {took:.1?}", version - 1);
    }
}
