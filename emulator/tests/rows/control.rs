//! Branches, calls, ends of threads, and what concerns the thread as a whole; room on the stack.

use super::demo::{Demo, ROW};

fn x0(thread: usize, x: &[u32]) -> u32 {
    x[thread * ROW]
}

const LOAD: &str = "ld.global.b32 %r20, [%rd2];\n";
const STORE: &str = "st.global.b32 [%rd3], %r20;\n";
/// Functions with and without parameters and results.
const FUNCTIONS: &str = "\
.global .align 4 .u32 told[32];
.func quiet { .reg .b32 %r<2>; .reg .b64 %rd<2>;\nmov.u32 %r0, %tid.x;\nmov.u64 %rd0, told;\nmad.wide.u32 %rd0, %r0, 4, %rd0;\n\
st.global.u32 [%rd0], 77;\nret; }
.func (.reg .b32 r) answer { mov.u32 r, 42;\nret; }
.func tell(.reg .b32 a) { .reg .b32 %r<2>; .reg .b64 %rd<2>;\nmov.u32 %r0, %tid.x;\nmov.u64 %rd0, told;\nmad.wide.u32 %rd0, %r0, 4, %rd0;\n\
st.global.u32 [%rd0], a;\nret; }
.func (.reg .b32 r) triple(.reg .b32 a) { .reg .pred %p<2>;\nmul.lo.u32 r, a, 3;\nsetp.lt.s32 %p0, a, 0;\n@%p0 ret.uni;\nadd.u32 r, r, 1;\nret; }
";

fn call(line: &str, read: bool, want: impl Fn(u32) -> u32 + 'static) -> Demo {
    let told =
        if read { "mov.u64 %rd8, told;\nmad.wide.u32 %rd8, %r0, 4, %rd8;\nld.global.u32 %r20, [%rd8];\n" } else { "" };
    let proto = "one: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nnone: .callprototype _ ();\nto: .callprototype _ (.reg .b32 _);\n\
        from: .callprototype (.reg .b32 _) _ ();\n";
    let body = format!("{proto}{LOAD}{line}\n{told}{STORE}");
    Demo::new(body, move |thread, x| vec![want(x0(thread, x))]).after(FUNCTIONS)
}

/// What `triple` gives.
fn triple(a: u32) -> u32 {
    a.wrapping_mul(3).wrapping_add(u32::from((a as i32) >= 0))
}

pub fn demos() -> Vec<Demo> {
    let mut all = Vec::new();
    for uni in ["", ".uni"] {
        let body = format!("{LOAD}bra{uni} A;\nadd.u32 %r20, %r20, 1;\nA:\n{STORE}");
        all.push(Demo::new(body, |thread, x| vec![x0(thread, x)]));
        let body = format!(
            "{LOAD}and.b32 %r21, {}, 3;\nt: .branchtargets A, B, C, A;\nbrx.idx{uni} %r21, t;\nA:\nadd.u32 %r20, %r20, 1;\nbra D;\nB:\n\
             add.u32 %r20, %r20, 2;\nbra D;\nC:\nadd.u32 %r20, %r20, 4;\nD:\n{STORE}",
            if uni.is_empty() { "%r20" } else { "6" }
        );
        let lanes = uni.is_empty();
        all.push(Demo::new(body, move |thread, x| {
            let value = x0(thread, x);
            let arm = if lanes { value & 3 } else { 2 };
            vec![value.wrapping_add([1, 2, 4, 1][arm as usize])]
        }));
        all.push(call(&format!("call{uni} quiet;"), true, |_| 77));
        all.push(call(&format!("call{uni} (%r20), answer;"), false, |_| 42));
        all.push(call(&format!("call{uni} tell, (%r20);"), true, |a| a));
        all.push(call(&format!("call{uni} (%r20), triple, (%r20);"), false, triple));
        all.push(call(&format!("mov.u64 %rd9, triple;\ncall{uni} (%r20), %rd9, (%r20), one;"), false, triple));
        all.push(call(&format!("mov.u64 %rd9, tell;\ncall{uni} %rd9, (%r20), to;"), true, |a| a));
        let end = format!("{LOAD}setp.lt.s32 %p1, %r20, 0;\n{STORE}@%p1 ret{uni};\nst.global.b32 [%rd3+4], 5;\n");
        // Uniform means that all lanes do; one thread is all of them.
        let block = if uni.is_empty() { 32 } else { 1 };
        all.push(
            Demo::new(end, |thread, x| {
                let value = x0(thread, x);
                if (value as i32) < 0 { vec![value] } else { vec![value, 5] }
            })
            .of(block),
        );
    }
    all.push(Demo::new(format!("{STORE_ONE}ret.uni;\nst.global.b32 [%rd3+4], 5;\n"), |_, _| vec![1]));
    all.push(Demo::new(
        format!("{LOAD}setp.lt.s32 %p1, %r20, 0;\n{STORE}@%p1 exit;\nst.global.b32 [%rd3+4], 5;\n"),
        |thread, x| {
            let value = x0(thread, x);
            if (value as i32) < 0 { vec![value] } else { vec![value, 5] }
        },
    ));
    for line in ["brkpt", "nanosleep.u32 100", "nanosleep.u32 %r20", "pmevent 3"] {
        all.push(Demo::new(format!("{LOAD}{line}; // a hint\n{STORE}"), |thread, x| vec![x0(thread, x)]).silent());
    }
    let stop = format!("{LOAD}setp.eq.u32 %p1, %r0, 7;\n@!%p1 bra A;\ntrap;\nA:\n{STORE}");
    all.push(Demo::new(stop, |thread, x| vec![x0(thread, x)]).ends("lane 7"));
    // One warpgroup gives registers back, the other takes them, and gives some back that it did not have before.
    let body = format!(
        "{LOAD}setp.ge.u32 %p1, %r0, 128;\n@%p1 bra A;\nsetmaxnreg.dec.sync.aligned.u32 24;\nbar.sync 0;\nbra B;\nA:\n\
         setmaxnreg.inc.sync.aligned.u32 232;\nbar.sync 0;\nsetmaxnreg.dec.sync.aligned.u32 200;\nB:\n{STORE}"
    );
    all.push(Demo::new(body, |thread, x| vec![x0(thread, x)]).of(256).directed(".maxnreg 128"));
    // A word in fresh room; what is given back is given out again.
    for (ty, prefix, word) in [("u64", "%rd", "cvt.u32.u64 %r22, %rd13"), ("u32", "%r", "mov.b32 %r22, %r13")] {
        let body = format!(
            "{LOAD}stacksave.{ty} {prefix}11;\nalloca.{ty} {prefix}10, 32, 16;\nst.local.u32 [{prefix}10+12], %r20;\n\
             ld.local.u32 %r21, [{prefix}10+12];\nstackrestore.{ty} {prefix}11;\nalloca.{ty} {prefix}12, 32, 16;\n\
             sub.{ty} {prefix}13, {prefix}12, {prefix}10;\n{word};\nst.global.v2.b32 [%rd3], {{%r21, %r22}};\n"
        );
        all.push(Demo::new(body, |thread, x| vec![x0(thread, x), 0]));
    }
    all
}

const STORE_ONE: &str = "st.global.b32 [%rd3], 1;\n";
