//! `tilewright draw` as its users meet it: pictures of two small kernels, and what goes wrong.

use std::path::PathBuf;
use std::process::Command;

use expect_test::expect_file;

/// Runs the command in the folder of the test kernels: exit code, standard output, standard error.
fn draw(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("draw")
        .args(arguments)
        .current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernels"))
        .output()
        .expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(&output.stdout), text(&output.stderr))
}

/// A picture as it goes to standard output.
fn picture(arguments: &[&str]) -> String {
    let (code, out, err) = draw(&[arguments, &["-o", "-"]].concat());
    assert_eq!((code, &*err), (0, ""), "{arguments:?}");
    out
}

/// The sections of a picture, in order.
fn sections(picture: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(picture).expect("XML");
    let names = tree.descendants().filter(|n| n.attribute("class") == Some("heading"));
    names.filter_map(|n| n.text()).map(|text| text.trim().to_owned()).collect()
}

/// The whole of two pictures; `UPDATE_EXPECT=1` takes over what is drawn now.
#[test]
fn pictures_are_as_they_were() {
    expect_file!["pictures/saxpy.svg"].assert_eq(&picture(&["good.rs", "--kernel", "Saxpy", "--dims", "N=1000"]));
    expect_file!["pictures/row_sum.svg"].assert_eq(&picture(&["staged.rs", "--kernel", "RowSum"]));
}

/// Sections without anything to show are left out.
#[test]
fn sections_are_those_that_a_kernel_has() {
    let saxpy = ["good.rs", "--kernel", "Saxpy"];
    assert_eq!(sections(&picture(&saxpy)), ["kernel Saxpy", "Iteration domains", "Threads of each stage"]);
    let sized = sections(&picture(&[&saxpy[..], &["--dims", "N=1000"]].concat()));
    assert_eq!(sized, ["kernel Saxpy", "Iteration domains", "Boxes over tensors", "Threads of each stage"]);
    let staged = sections(&picture(&["staged.rs", "--kernel", "RowSum", "--dims", "M=40,K=100"]));
    let all = [
        "kernel RowSum",
        "Iteration domains",
        "Boxes over tensors",
        "Banks of shared memory",
        "Shared memory over time",
        "Threads of each stage",
        "Roles over time",
    ];
    assert_eq!(staged, all);
}

/// `--only` draws what it names, in the order of the page.
#[test]
fn sections_can_be_chosen() {
    let staged = ["staged.rs", "--kernel", "RowSum", "--dims", "M=40,K=100"];
    let some = picture(&[&staged[..], &["--only", "banks,boxes"]].concat());
    assert_eq!(sections(&some), ["kernel RowSum", "Boxes over tensors", "Banks of shared memory"]);
    assert!(some.len() < picture(&staged).len(), "{} bytes", some.len());
}

#[test]
fn a_file_is_written() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("saxpy.svg");
    let name = path.to_str().expect("UTF-8");
    let (code, out, err) = draw(&["good.rs", "--kernel", "Saxpy", "--dims", "N=1000", "-o", name]);
    let text = std::fs::read_to_string(&path).expect("the picture");
    assert_eq!((code, out, err), (0, format!("{name}: {} bytes\n", text.len()), String::new()));
    assert_eq!(text, picture(&["good.rs", "--kernel", "Saxpy", "--dims", "N=1000"]));
}

/// Where the emulator cannot run the kernel, the rest is drawn.
#[test]
fn a_picture_without_a_trace_says_why() {
    let (code, out, err) = draw(&["staged.rs", "--kernel", "RowSum", "--dims", "M=100000,K=100000", "-o", "-"]);
    assert_eq!((code, sections(&out).contains(&"Roles over time".to_owned())), (0, false));
    assert!(err.starts_with("note: roles over time are not all there: the tensors take 8"), "{err}");
}

/// With sizes for which a launch takes another entry point, that one is drawn: here it has no copies.
#[test]
fn the_entry_point_is_that_of_the_sizes() {
    let staged = picture(&["staged.rs", "--kernel", "RowSum", "--dims", "M=40,K=100"]);
    assert!(staged.contains("entry RowSum, ") && staged.contains("xs of x in shared at y.ko via tma"));
    assert!(staged.contains("k &lt; 100 is not tested around terms: zeros of xs change nothing"), "{staged}");
    let plain = picture(&["staged.rs", "--kernel", "RowSum", "--dims", "M=40,K=0"]);
    assert!(plain.contains("entry RowSum_64, ") && !plain.contains("xs"), "{plain}");
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |arguments: &[&str], code: i32, what: &str| {
        let (found, out, err) = draw(arguments);
        assert_eq!((found, &*out), (code, ""), "{arguments:?}: {err}");
        assert!(err.contains(what), "{arguments:?}: {err}");
    };
    let of = |rest: &[&str], code: i32, what: &str| {
        wrong(&[&["good.rs", "--kernel", "Saxpy", "-o", "-"], rest].concat(), code, what);
    };
    wrong(&["good.rs", "--kernel", "Sax", "-o", "-"], 2, "good.rs has no kernel `Sax`; it has Saxpy, RowSum, Half");
    wrong(&["good.rs", "-o", "-"], 2, "good.rs has 3 kernels: add --kernel with one of Saxpy");
    wrong(&["missing.rs", "-o", "-"], 2, "missing.rs: ");
    wrong(&["good.rs", "--kernel", "Saxpy"], 2, "--output <FILE>");
    wrong(&["wrong.rs", "--kernel", "Saxpy", "-o", "-"], 1, "error[TW0201]: cannot vectorise `v`");
    let nowhere = "no/such/folder/k.svg";
    wrong(&["good.rs", "--kernel", "Saxpy", "-o", nowhere], 2, "error: no/such/folder/k.svg cannot be written: ");
    of(&["--only", "roles"], 2, "Saxpy has nothing for the section `roles`; sizes may bring it: add --dims");
    of(&["--only", "roles", "--dims", "N=1000"], 2, "Saxpy has nothing for the section `roles`\n");
    of(&["--only", "lanes"], 2, "[possible values: domains, boxes, banks, memory, threads, roles]");
    of(&["--dims", "N=1001"], 2, "error: `N % 4 == 0` does not hold for N = 1001");
    of(&["--dims", "M=8"], 2, "the kernel has no dimension `M`; it has N");
    of(&["--dims", "N"], 2, "`N` is no size");
    wrong(&["staged.rs", "--kernel", "RowSum", "--dims", "M=8", "-o", "-"], 2, "no value for K: add --dims K=…");
}
