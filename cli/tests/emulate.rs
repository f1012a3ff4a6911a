//! `tilewright emulate` as its users meet it.

#[path = "common/emulate.rs"]
mod run;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tilewright_cli::emulate::npy::{self, Npy};

const SAXPY: &str = "\
.version 7.0
.target sm_80
.address_size 64
.global .align 4 .f32 offset = 0f3F800000;
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {
    .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<5>; .reg .b64 %d<5>;
    ld.param.u32 %r0, [n];
    ld.param.f32 %f0, [a];
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    setp.ge.u32 %p, %r1, %r0;
    @%p bra done;
    mad.wide.u32 %d2, %r1, 4, %d0;
    mad.wide.u32 %d3, %r1, 4, %d1;
    ld.global.f32 %f1, [%d2];
    ld.global.f32 %f2, [%d3];
    ld.global.f32 %f4, [offset];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    add.f32 %f3, %f3, %f4;
    st.global.f32 [%d3], %f3;
done:
    ret;
}
.visible .entry fill(.param .u64 z, .param .align 4 .b8 pair[8]) {
    .reg .b32 %r<3>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [z];
    ld.param.u32 %r0, [pair+4];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %d1, %r1, 4, %d0;
    st.global.u32 [%d1], %r0;
    ret;
}
";

/// A new folder with the program in it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("k.ptx"), SAXPY).unwrap();
    folder
}

/// Runs `tilewright emulate k.ptx …` in the folder: exit code, standard output, standard error.
fn emulate(folder: &Path, arguments: &str) -> (i32, String, String) {
    run::emulate(folder, &format!("k.ptx {arguments}"))
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn arrays_of_numpy_in_and_out() {
    let folder = folder("npy");
    let array = |values: &[f32]| {
        npy::write(&Npy { dtype: "f4".into(), shape: vec![values.len() as u64], data: floats(values) })
    };
    std::fs::write(folder.join("x.npy"), array(&[1.0, 2.0, 3.0])).unwrap();
    std::fs::write(folder.join("y.npy"), array(&[0.5, 0.5, 0.5])).unwrap();
    let (code, out, err) = emulate(
        &folder,
        "--entry saxpy --grid 1 --block 32 --arg u32:3 --arg f32:2 --arg in:x.npy --arg inout:y.npy=z.npy",
    );
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("no findings\n") && out.ends_with("z.npy: 12 bytes\n"), "{out}");
    let z = npy::read(&std::fs::read(folder.join("z.npy")).unwrap()).unwrap();
    assert_eq!((z.dtype.as_str(), &z.shape[..], z.data), ("f4", &[3][..], floats(&[3.5, 5.5, 7.5])));
}

#[test]
fn raw_files_and_variables_of_the_module() {
    let folder = folder("raw");
    std::fs::write(folder.join("x.bin"), floats(&[1.0, 2.0])).unwrap();
    std::fs::write(folder.join("y.bin"), floats(&[0.0, 0.0])).unwrap();
    std::fs::write(folder.join("offset.bin"), floats(&[100.0])).unwrap();
    let (code, out, _) = emulate(
        &folder,
        "--entry saxpy --block 2 --arg u32:2 --arg f32:-1 --arg in:x.bin --arg inout:y.bin=z.bin --symbol offset=offset.bin",
    );
    assert_eq!(code, 0, "{out}");
    assert_eq!(std::fs::read(folder.join("z.bin")).unwrap(), floats(&[99.0, 98.0]));
}

#[test]
fn structs_and_fresh_buffers() {
    let folder = folder("fresh");
    let (code, out, _) =
        emulate(&folder, "--entry fill --block 4,2 --arg out:u32[2,2]=z.npy --arg bytes:00000000_2a000000");
    assert_eq!(code, 0, "{out}");
    let z = npy::read(&std::fs::read(folder.join("z.npy")).unwrap()).unwrap();
    assert_eq!((z.shape, z.data), (vec![2, 2], [42, 0, 0, 0].repeat(4)));
}

#[test]
fn findings_as_text_and_as_json() {
    let folder = folder("findings");
    // Three elements, four threads.
    let arguments = "--entry fill --block 4 --arg zero:u32[3]=z.npy --arg bytes:0000000001000000";
    let (code, out, _) = emulate(&folder, arguments);
    assert_eq!(code, 1);
    assert!(out.starts_with("error: access out of bounds in kernel `fill`, line 34 (`st.global.u32`)\n"), "{out}");
    assert!(out.contains("4 bytes past the end of `z` of 12 bytes"), "{out}");
    let (code, out, _) = emulate(&folder, &format!("{arguments} --json --seed 3"));
    assert_eq!(code, 1);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["format"], &json["good"], &json["seed"]), (&1.into(), &false.into(), &3.into()));
    let finding = &json["findings"][0];
    assert_eq!((&finding["kind"], &finding["fatal"]), (&"OutOfBounds".into(), &true.into()));
    assert_eq!((&finding["place"]["line"], &finding["thread"]["lane"]), (&34.into(), &3.into()));
    assert_eq!(finding["location"]["near"]["name"], "z");
    assert_eq!(json["outputs"][0]["file"], "z.npy");
    assert_eq!(json["counters"]["global"]["store_requests"], 1);
}

#[test]
fn wrong_usage_says_what_is_wrong() {
    let folder = folder("wrong");
    std::fs::write(folder.join("bad.npy"), "no").unwrap();
    for (arguments, message) in [
        ("--block 32", "several kernels; name one with --entry: `saxpy`, `fill`"),
        ("--entry nope --block 32", "there is no kernel `nope` in the program; it has `saxpy`, `fill`"),
        ("--entry fill --block 32 --arg null", "the kernel has 2 parameters, and 1 arguments were given"),
        ("--entry fill --block 32 --arg u32:1 --arg bytes:00", "parameter `z` has 8 bytes, and its argument has 4"),
        ("--entry fill --block 2000 --arg null --arg bytes:0000000000000000", "the block has 2000 threads in x"),
        (
            "--entry fill --block 1 --arg in:bad.npy",
            "argument 1 (`in:bad.npy`): bad.npy: it does not start like a .npy file",
        ),
        ("--entry fill --block 1 --arg in:none.bin", "none.bin cannot be read"),
        ("--entry fill --block 1 --arg u32:x", "argument 1 (`u32:x`): `x` is no u32"),
        ("--entry fill --block 1 --arg out:u32[99999999999999]", "cannot allocate"),
        ("--entry fill --block 1,1,1,1", "at most three numbers"),
        ("--entry fill --block 1 --symbol nope=k.ptx --arg null --arg null", "there is no variable `nope`"),
        ("--entry fill --block 1 --matrix volta", "fast, ampere or hopper"),
    ] {
        let (code, out, err) = emulate(&folder, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments}");
        assert!(err.contains(message), "{arguments}: {err}");
    }
    std::fs::write(folder.join("k.ptx"), SAXPY.replace("fma.rn.f32", "fma.rn.f33")).unwrap();
    // A mistake in one kernel is of no concern to another.
    let (code, _, err) = emulate(&folder, "--entry fill --block 1 --arg zero:u32[1] --arg bytes:0000000000000000");
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = emulate(&folder, "--entry saxpy --block 1");
    assert_eq!(code, 2);
    assert!(err.contains("line 22") && err.contains("fma.rn.f33"), "{err}");
}

const TILE: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 64 .b8 x[128], .param .align 64 .b8 z[128]) {
    .reg .pred %p; .reg .b64 %d<2>;
    .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
    mov.b64 %d0, x; cvta.param.u64 %d0, %d0;
    mov.b64 %d1, z; cvta.param.u64 %d1, %d1;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d0, {0, 1}], [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra wait;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {8, 0}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
";

#[test]
fn tensor_maps_of_buffers() {
    let folder = folder("maps");
    std::fs::write(folder.join("k.ptx"), TILE).unwrap();
    let x: Vec<f32> = (0..3 * 8).map(|n| n as f32).collect();
    let data = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let npy = npy::write(&Npy { dtype: "f4".to_owned(), shape: vec![3, 8], data });
    std::fs::write(folder.join("x.npy"), npy).unwrap();
    let shape = "--entry copy --grid 1 --block 1";
    let (code, out, err) =
        emulate(&folder, &format!("{shape} --arg map:8x8,nan:in:x.npy --arg map:8x8:zero:f32[2,16]=z.bin --seed 1"));
    assert_eq!(code, 0, "{out}{err}");
    // Rows 1 and 2 of x in the right half of z.
    let z = std::fs::read(folder.join("z.bin")).unwrap();
    let z: Vec<f32> = z.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    for (at, z) in z.iter().enumerate() {
        let (row, column) = (at / 16, at % 16);
        assert_eq!(*z, if column < 8 { 0.0 } else { x[8 * (row + 1) + column - 8] }, "{at}");
    }
    for (map, why) in [
        ("map:8:in:x.npy", "the box has 1 dimensions and the buffer 2"),
        ("map:8x7:in:x.npy", "not a multiple of 16"),
        ("map:8x8,swizzle16x:in:x.npy", "neither swizzle32"),
        ("map:8x8:in:k.ptx", "a buffer with a shape"),
    ] {
        let (code, _, err) = emulate(&folder, &format!("{shape} --arg {map} --arg map:8x8:zero:f32[2,16]"));
        assert!(code == 2 && err.contains(why), "{map}: {err}");
    }
}

/// What is wrong is said with its values, and as JSON where that was asked for.
#[test]
fn wrong_usage_is_explained() {
    let folder = folder("usage");
    let x = floats(&[1.0; 64]);
    let header = |dtype: &str, order: &str, count: usize| {
        let text = format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': ({count},), }}");
        let length = 64usize.next_multiple_of(64).max((text.len() + 11).next_multiple_of(64)) - 10;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((length as u16).to_le_bytes());
        bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
        bytes
    };
    let array = |dtype: &str, order: &str, count: usize| [header(dtype, order, count), x.clone()].concat();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("x.npy", &array("<f4", "False", 64));
    write("big.npy", &array(">f4", "False", 64));
    write("columns.npy", &array("<f4", "True", 64));
    write("long.npy", &array("<f4", "False", 65));
    write("object.npy", &array("|O", "False", 64));
    write("cut.npy", &array("<f4", "False", 64)[..40]);
    write("empty.npy", &[]);
    write("x.npz", &x);
    write("bytes.ptx", &[0xff, 0xfe, 0x80]);
    std::fs::create_dir_all(folder.join("sub.npy")).unwrap();
    let good = "--entry saxpy --grid 1 --block 64 --arg u32:64 --arg f32:2 --arg in:x.npy --arg inout:x.npy=z.npy";
    let (code, _, err) = emulate(&folder, good);
    assert_eq!(code, 0, "{err}");
    for (from, to, why) in [
        ("k.ptx", "none.ptx", "none.ptx cannot be read"),
        ("k.ptx", "sub.npy", "sub.npy cannot be read"),
        ("k.ptx", "bytes.ptx", "bytes.ptx cannot be read: stream did not contain valid UTF-8"),
        ("k.ptx", "x.npz", "cannot be read"),
        ("--entry saxpy", "--entry saxony", "there is no kernel `saxony` in the program; it has `saxpy`, `fill`"),
        ("--entry saxpy", "", "several kernels; name one with --entry: `saxpy`, `fill`"),
        ("--arg f32:2 ", "", "4 parameters, and 3 arguments"),
        ("u32:64", "u64:64", "parameter `n` has 4 bytes, and its argument has 8"),
        ("u32:64", "u32:-1", "`-1` is no u32"),
        ("u32:64", "s32:--5", "`--5` is no s32"),
        ("u32:64", "q32:1", "there is no type `q32`"),
        ("in:x.npy", "in:none.npy", "none.npy cannot be read"),
        ("in:x.npy", "in:sub.npy", "sub.npy cannot be read"),
        ("in:x.npy", "in:big.npy", "its type >f4 is big-endian"),
        ("in:x.npy", "in:columns.npy", "Fortran order; save it in C order"),
        ("in:x.npy", "in:long.npy", "do not fit its 256 bytes"),
        ("in:x.npy", "in:object.npy", "its type |O is not one of plain numbers"),
        ("in:x.npy", "in:cut.npy", "ends within its header"),
        ("in:x.npy", "in:empty.npy", "does not start like a .npy file"),
        ("in:x.npy", "in:x.npz", "archives of arrays are not read"),
        ("in:x.npy", "out:f32[9999999999,9999999999]", "more bytes than there are addresses"),
        ("in:x.npy", "out:f32[99999999999999]", "cannot allocate 399999999999996 bytes"),
        ("=z.npy", "=sub.npy", "sub.npy cannot be written: it is a folder"),
        ("=z.npy", "=no/z.npy", "no/z.npy cannot be written: there is no folder no"),
        ("--grid 1", "--grid 0", "the grid has 0 blocks in x"),
        ("--grid 1", "--grid 1,65536", "the grid has 65536 blocks in y; it must have 1 to 65535"),
        ("--grid 1", "--grid 2147483648", "it must have 1 to 2147483647"),
        ("--block 64", "--block 1,0", "the block has 0 threads in y"),
        ("--block 64", "--block 64,64", "4096 threads"),
        ("--grid 1", "--grid 1 --shared 999999", "999999 bytes of shared memory"),
        ("--grid 1", "--grid 1 --symbol q=x.npy", "there is no variable `q`"),
        ("--grid 1", "--grid 1 --symbol offset=x.npy", "`--symbol offset=x.npy`, 256 bytes: "),
    ] {
        let arguments = format!("k.ptx {good}").replacen(from, to, 1);
        let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(["emulate", "--json"])
            .args(arguments.split_whitespace())
            .current_dir(&folder)
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {err}");
        assert!(err.starts_with("error: ") && err.contains(why), "{arguments}: {err}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["good"] == false && json["error"].as_str().is_some_and(|error| error.contains(why)), "{json}");
    }
    // Of options that are none, the command line's own parser speaks.
    for (from, to, why) in [
        ("--grid 1", "--grid -1", "`-1` is no number"),
        ("--grid 1", "--grid 1,2,3,4", "at most three numbers"),
        ("--block 64", "--block x", "`x` is no number"),
        ("--grid 1", "--grid 1 --seed -1", "'-1'"),
        ("--grid 1", "--grid 1 --matrix volta", "fast, ampere or hopper"),
    ] {
        let (code, _, err) = emulate(&folder, &good.replacen(from, to, 1));
        assert!(code == 2 && err.contains(why), "{to}: {err}");
    }
}
