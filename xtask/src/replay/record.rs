//! What became of one source.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use tilewright::kernel::KernelInfo;
use tilewright_cli::source::SourceFile;

/// What the compiler made of one source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// Errors and warnings as a terminal shows them; or why the source is no Rust; or that the compiler panicked.
    pub messages: String,
    /// Every finished kernel by its name, and by its number where the file has several of that name.
    pub kernels: BTreeMap<String, Made>,
}

/// A finished kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Made {
    /// The device code.
    pub ptx: String,
    /// Everything that the launcher reads, in the notation of `Debug`.
    pub launch: String,
    /// What `tilewright inspect` tells a reader.
    pub explanation: String,
}

impl Made {
    /// The parts by name.
    pub fn parts(&self) -> [(&'static str, &str); 3] {
        [("ptx", &self.ptx), ("launch", &self.launch), ("explanation", &self.explanation)]
    }

    fn of(info: &KernelInfo) -> Self {
        let (ptx, explanation) = (info.ptx.text.to_string(), info.explanation.to_string());
        let mut rest = info.clone();
        (rest.ptx.text, rest.explanation) = ("".into(), "".into());
        Self { ptx, launch: format!("{rest:#?}"), explanation }
    }

    fn from_json(value: &Value) -> Option<Self> {
        let part = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Self { ptx: part("ptx")?, launch: part("launch")?, explanation: part("explanation")? })
    }
}

impl Record {
    /// Compiles a source that holds calls of `schedule!`, or one kernel without that.
    pub fn of(name: &str, text: &str) -> Self {
        let file = if text.contains("schedule!") { text.to_owned() } else { format!("schedule! {{\n{text}\n}}") };
        let compiled = catch_unwind(AssertUnwindSafe(|| match SourceFile::parse(name, &file) {
            Ok(file) => {
                let mut made = BTreeMap::new();
                for info in file.kernels().filter_map(|found| found.kernel.info.as_ref()) {
                    // Modules of one file may have kernels of one name.
                    let names =
                        (1..).map(|n| if n == 1 { info.name.to_string() } else { format!("{} {n}", info.name) });
                    let free = names.into_iter().find(|name| !made.contains_key(name)).unwrap_or_default();
                    made.insert(free, Made::of(info));
                }
                Self { messages: file.findings().text, kernels: made }
            }
            Err(error) => Self { messages: error.to_string(), kernels: BTreeMap::new() },
        }));
        compiled.unwrap_or_else(|_| Self { messages: "the compiler panicked".to_owned(), kernels: BTreeMap::new() })
    }

    /// For the file.
    pub fn to_json(&self) -> Value {
        let kernel = |(name, made): (&String, &Made)| {
            (
                name.clone(),
                Value::Object(made.parts().map(|(part, text)| (part.to_owned(), json!(text))).into_iter().collect()),
            )
        };
        json!({ "messages": self.messages, "kernels": Value::Object(self.kernels.iter().map(kernel).collect()) })
    }

    /// From the file; none if it is something else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let messages = value.get("messages")?.as_str()?.to_owned();
        let kernel = |(name, made): (&String, &Value)| Some((name.clone(), Made::from_json(made)?));
        let kernels = value.get("kernels")?.as_object()?.iter().map(kernel).collect::<Option<_>>()?;
        Some(Self { messages, kernels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One kernel, with what it stores.
    fn copy(value: &str) -> String {
        format!(
            "kernel K(x: f32[N]) -> (y: f32[N]) {{ y[i] = {value}; schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }} }}"
        )
    }

    #[test]
    fn a_kernel_with_and_without_its_macro_is_the_same() {
        let (bare, whole) =
            (Record::of("a", &copy("x[i]")), Record::of("a", &format!("schedule! {{ {} }}", copy("x[i]"))));
        assert!(bare.kernels["K"].ptx.contains(".entry"), "{bare:?}");
        assert_eq!(bare.kernels, whole.kernels);
    }

    #[test]
    fn kernels_of_one_name_are_all_kept() {
        let module = |name: &str| format!("mod {name} {{ schedule! {{ {} }} }}", copy("x[i]"));
        let record = Record::of("a", &(module("a") + &module("b")));
        assert_eq!(record.kernels.keys().collect::<Vec<_>>(), ["K", "K 2"]);
    }

    #[test]
    fn what_is_kept_is_what_was_made() {
        for text in [copy("x[i]"), copy("z[i]"), "fn f(".to_owned()] {
            let record = Record::of("a", &text);
            assert_eq!(Record::from_json(&record.to_json()), Some(record.clone()));
            assert_eq!(record.kernels.is_empty(), !record.messages.is_empty(), "{record:?}");
        }
    }
}
