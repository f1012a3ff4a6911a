//! Loads and stores of every type, vector, space and cache operation; hints of the cache; addresses.

use tilewright_ptx::isa::{Form, Memory, Op};
use tilewright_ptx::{Modifier, ScalarType, StateSpace};

use super::demo::{Demo, ROW, head, spread};

/// Type, elements, space of an access.
fn parts(modifiers: &[Modifier]) -> (ScalarType, usize, Option<StateSpace>) {
    let mut parts = (ScalarType::B32, 1, None);
    for modifier in modifiers {
        match modifier {
            Modifier::Type(ty) => parts.0 = *ty,
            Modifier::Space(space) => parts.2 = Some(*space),
            Modifier::Flag(_) if modifier.to_string() == "v2" => parts.1 = 2,
            Modifier::Flag(_) if modifier.to_string() == "v4" => parts.1 = 4,
            _ => {}
        }
    }
    parts
}

/// Names of registers for values of this many bits.
fn registers(ty: ScalarType, bits: u32, count: usize) -> Vec<String> {
    let prefix = match (ty, bits) {
        (ScalarType::F32, _) => "%f",
        (ScalarType::F64, _) => "%fd",
        (_, 16) => "%h",
        (_, 32) => "%r",
        (_, 64) => "%rd",
        _ => "%q",
    };
    (0..count).map(|n| format!("{prefix}{}", if bits == 128 { n } else { 10 + n })).collect()
}

fn list(names: &[String]) -> String {
    if names.len() == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
}

/// Stores registers to the thread's row of y, one after the other, in words of 4 bytes.
fn put(names: &[String], bits: u32) -> String {
    let mut text = String::new();
    for (number, name) in names.iter().enumerate() {
        let at = number * (bits as usize).max(32) / 8;
        text += &match bits {
            16 => format!("cvt.u32.u16 %r30, {name};\nst.global.b32 [%rd3+{at}], %r30;\n"),
            128 => format!("mov.b128 {{%rd20, %rd21}}, {name};\nst.global.v2.b64 [%rd3+{at}], {{%rd20, %rd21}};\n"),
            _ => format!("st.global.b{bits} [%rd3+{at}], {name};\n"),
        };
    }
    text
}

const FIRST: &str = "ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd2];\n";
const TABLE: [u32; 8] =
    [0x8182_8384, 0x7172_7374, 0xf1f2_f3f4, 0x0102_0304, 0x9192_9394, 0x8000_0001, 0x7fff_fffe, 0xa5a5_5a5a];

fn table() -> String {
    let words: Vec<String> = TABLE.iter().map(u32::to_string).collect();
    format!(".const .align 16 .u32 table[8] = {{{}}};\n", words.join(", "))
}

/// One load: what it reads is put where it reads it, by another instruction.
fn load(form: &Form, modifiers: &[Modifier], number: usize) -> Demo {
    let (ty, count, space) = parts(modifiers);
    let is_float = matches!(ty, ScalarType::F32 | ScalarType::F64);
    let least = ty.bits().max(16);
    let widths: Vec<u32> = [16, 32, 64].into_iter().filter(|bits| *bits >= least).collect();
    let bits = if is_float || least > 64 { least } else { widths[number % widths.len()] };
    let (before, setup, address) = match space.map(|space| (space, space.base())) {
        Some((_, StateSpace::Shared)) => {
            (String::new(), format!("{FIRST}st.shared.v4.b32 [%r1], {{%r20, %r21, %r22, %r23}};\n"), "[%r1]")
        }
        Some((_, StateSpace::Local)) => {
            (String::new(), format!("{FIRST}st.local.v4.b32 [room+16], {{%r20, %r21, %r22, %r23}};\n"), "[room+16]")
        }
        Some((_, StateSpace::Const)) => (table(), String::new(), "[table]"),
        Some((StateSpace::ParamFunc, _)) => (
            ".func (.param .align 16 .b8 r[16]) same(.param .align 16 .b8 a[16]) { .reg .b64 %rd<2>;\nld.param.v2.b64 {%rd0, %rd1}, [a];\n\
             st.param.v2.b64 [r], {%rd0, %rd1};\nret; }\n"
                .to_owned(),
            format!(
                "{FIRST}.param .align 16 .b8 arg[16]; .param .align 16 .b8 res[16];\nst.param.v4.b32 [arg], {{%r20, %r21, %r22, %r23}};\n\
                 call (res), same, (arg);\n"
            ),
            "[res]",
        ),
        Some((_, StateSpace::Param)) => (String::new(), String::new(), "[pack+16]"),
        _ => (String::new(), String::new(), "[%rd2]"),
    };
    let constant = matches!(space.map(StateSpace::base), Some(StateSpace::Const | StateSpace::Param))
        && space != Some(StateSpace::ParamFunc);
    let mut operands = vec![list(&registers(ty, bits, count)), address.to_owned()];
    let mut setup = setup;
    if modifiers.iter().any(|modifier| modifier.to_string() == "L2::cache_hint") {
        setup += "createpolicy.fractional.L2::evict_first.b64 %rd19;\n";
        operands.push("%rd19".to_owned());
    }
    let body = format!(
        "{setup}{} {};\n{}",
        head(form, modifiers),
        operands.join(", "),
        put(&registers(ty, bits, count), bits)
    );
    let want = move |thread: usize, x: &[u32]| {
        let row = if constant { &TABLE[..] } else { &x[thread * ROW..][..ROW] };
        let bytes: Vec<u8> = row.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = ty.bytes() as usize;
        bytes[..count * size].chunks(size).flat_map(|element| extend(element, ty.is_signed(), bits)).collect()
    };
    let demo = Demo::new(body, want).after(before);
    if address != "[pack+16]" {
        return demo;
    }
    demo.with(".param .align 16 .b8 pack[48]", |_, _| {
        let bytes = [[0; 16], [0; 16], [0; 16]].concat();
        let words = TABLE.iter().flat_map(|word| word.to_le_bytes());
        vec![tilewright_emulator::Arg(bytes[..16].iter().copied().chain(words).collect())]
    })
}

/// The words of a register that an element was loaded into.
fn extend(element: &[u8], signed: bool, bits: u32) -> Vec<u32> {
    let fill = if signed && element.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut bytes = element.to_vec();
    bytes.resize(element.len().max(bits as usize / 8), fill);
    // A register of 16 bits is shown as a word.
    bytes.resize(bytes.len().max(4), 0);
    bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// One store, read back by another instruction.
fn store(form: &Form, modifiers: &[Modifier], number: usize) -> Demo {
    let (ty, count, space) = parts(modifiers);
    let is_float = matches!(ty, ScalarType::F32 | ScalarType::F64);
    let least = ty.bits().max(16);
    let widths: Vec<u32> = [16, 32, 64].into_iter().filter(|bits| *bits >= least).collect();
    let bits = if is_float || least > 64 { least } else { widths[number % widths.len()] };
    let names = registers(ty, bits, count);
    let mut setup = String::new();
    for (number, name) in names.iter().enumerate() {
        setup += &match bits {
            128 => format!("ld.global.v2.b64 {{%rd20, %rd21}}, [%rd2];\nmov.b128 {name}, {{%rd20, %rd21}};\n"),
            _ => format!("ld.global.b{bits} {name}, [%rd2+{}];\n", number * 8),
        };
    }
    let zeros = "mov.b64 %rd20, 0;\n";
    let back = |load: &str| format!("{load} {{%rd20, %rd21}}, ");
    let (before, clear, address, read) = match space.map(|space| (space, space.base())) {
        Some((_, StateSpace::Shared)) => {
            (String::new(), "st.shared.v2.b64 [%r1], {%rd20, %rd20};\n", "[%r1]", back("ld.shared.v2.b64") + "[%r1];\n")
        }
        Some((_, StateSpace::Local)) => {
            (String::new(), "st.local.v2.b64 [room], {%rd20, %rd20};\n", "[room]", back("ld.local.v2.b64") + "[room];\n")
        }
        Some((_, StateSpace::Param)) => (
            ".func (.param .align 16 .b8 r[16]) same(.param .align 16 .b8 a[16]) { .reg .b64 %rd<2>;\nld.param.v2.b64 {%rd0, %rd1}, [a];\n\
             st.param.v2.b64 [r], {%rd0, %rd1};\nret; }\n"
                .to_owned(),
            ".param .align 16 .b8 arg[16]; .param .align 16 .b8 res[16];\nst.param.v2.b64 [arg], {%rd20, %rd20};\n",
            "[arg]",
            "call (res), same, (arg);\n".to_owned() + &back("ld.param.v2.b64") + "[res];\n",
        ),
        _ => (
            String::new(),
            "st.global.v2.b64 [%rd3], {%rd20, %rd20};\n",
            "[%rd3]",
            back("ld.global.v2.b64") + "[%rd3];\n",
        ),
    };
    let mut operands = vec![address.to_owned(), list(&names)];
    if modifiers.iter().any(|modifier| modifier.to_string() == "L2::cache_hint") {
        setup += "createpolicy.fractional.L2::evict_first.b64 %rd19;\n";
        operands.push("%rd19".to_owned());
    }
    // 128 bits take the registers that zeros were in.
    let body = format!(
        "{zeros}{clear}{setup}{} {};\n{read}st.global.v2.b64 [%rd3], {{%rd20, %rd21}};\n",
        head(form, modifiers),
        operands.join(", ")
    );
    let want = move |thread: usize, x: &[u32]| {
        let bytes: Vec<u8> = x[thread * ROW..][..ROW].iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = ty.bytes() as usize;
        let mut stored: Vec<u8> = (0..count).flat_map(|number| bytes[number * 8..][..size].to_vec()).collect();
        stored.resize(16, 0);
        stored.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    Demo::new(body, want).after(before)
}

/// With a hint, where there may be one: without, the text would be read as an earlier form.
fn hinted(form: &Form, modifiers: Vec<Modifier>) -> Vec<Modifier> {
    let is_hint = |modifier: &Modifier| modifier.to_string() == "L2::cache_hint";
    let mut words = form.slots.iter().flat_map(|slot| slot.alternatives.iter().map(|(modifier, _)| *modifier));
    let Some(hint) = words.find(is_hint).filter(|_| !modifiers.iter().any(is_hint)) else { return modifiers };
    let longer = [modifiers.clone(), vec![hint]].concat();
    form.arrange(&longer, true).unwrap_or(modifiers)
}

/// Copies the first word, with this instruction in between.
fn beside(line: &str) -> Demo {
    Demo::new(
        format!("ld.global.b32 %r20, [%rd2];\nmov.b64 %rd19, room;\n{line} // a hint\nst.global.b32 [%rd3], %r20;\n"),
        |thread, x| vec![x[thread * ROW]],
    )
    .silent()
}

pub fn demos() -> Vec<Demo> {
    let mut all = Vec::new();
    for memory in [Memory::Ld, Memory::LdNc, Memory::Ldu, Memory::St] {
        for form in Op::Memory(memory).forms() {
            for (number, modifiers) in spread(form, |_| false).into_iter().enumerate() {
                let modifiers = &hinted(form, modifiers);
                all.push(if memory == Memory::St {
                    store(form, modifiers, number)
                } else {
                    load(form, modifiers, number)
                });
            }
        }
    }
    for memory in
        [Memory::Prefetch, Memory::Applypriority, Memory::Discard, Memory::Createpolicy, Memory::PrefetchTensormap]
    {
        for form in Op::Memory(memory).forms() {
            for modifiers in spread(form, |_| false) {
                let head = head(form, &modifiers);
                let (_, _, space) = parts(&modifiers);
                let operand = match (memory, space) {
                    (Memory::Applypriority, _) => "[%rd2], 128",
                    // What is discarded is written before it is read.
                    (Memory::Discard, _) => "[%rd1], 128",
                    (Memory::PrefetchTensormap, Some(StateSpace::Const)) => "[table]",
                    (Memory::PrefetchTensormap, Some(_)) => "[map]",
                    (_, Some(StateSpace::Local)) => "[%rd19]",
                    _ => "[%rd2]",
                };
                let demo = match memory {
                    Memory::Createpolicy => policy(&head),
                    _ => beside(&format!("{head} {operand};")).after(table()),
                };
                all.push(demo.with(".param .align 64 .b8 map[128]", |x, _| vec![super::copies::map(x, 1)]));
            }
        }
    }
    all.extend(addresses());
    all
}

/// A policy that a load is given.
fn policy(head: &str) -> Demo {
    let operands = if head.contains("range") { "%rd19, [%rd0], 1024, 4096" } else { "%rd19, 0f3F000000" };
    Demo::new(
        format!("{head} {operands};\nld.global.L2::cache_hint.b32 %r20, [%rd2], %rd19;\nst.global.b32 [%rd3], %r20;\n"),
        |thread, x| vec![x[thread * ROW]],
    )
}

/// A word by its address in a space, by the generic address, and back; which space the generic address is in.
fn addresses() -> Vec<Demo> {
    let mut all = Vec::new();
    for space in ["const", "global", "local", "shared", "shared::cta", "shared::cluster", "param"] {
        let (variable, other) = match space {
            "const" => ("table", "%rd2"),
            "global" => ("word", "%rd7"),
            "local" => ("room", "%rd2"),
            "param" => ("pack", "%rd2"),
            _ => ("tile", "%rd2"),
        };
        let set = match space {
            "const" | "param" => String::new(),
            _ => format!("st.{space}.b32 [{variable}+4], 0x71727374;\n"),
        };
        let body = format!(
            "mov.u64 %rd7, room;\ncvta.local.u64 %rd7, %rd7;\n{set}mov.u64 %rd8, {variable};\ncvta.{space}.u64 %rd9, %rd8;\nld.b32 %r20, [%rd9+4];\n\
             cvta.to.{space}.u64 %rd10, %rd9;\nld.{space}.b32 %r21, [%rd10+4];\nsub.u64 %rd11, %rd9, %rd10;\nisspacep.{space} %p1, %rd9;\n\
             isspacep.{space} %p2, {other};\nselp.u32 %r22, 1, 0, %p1;\nselp.u32 %r23, 1, 0, %p2;\n\
             st.global.v4.b32 [%rd3], {{%r20, %r21, %r22, %r23}};\n"
        );
        let demo = Demo::new(body, |_, _| vec![TABLE[1], TABLE[1], 1, 0])
            .of(1)
            .after(table() + ".global .align 8 .b8 word[8];\n");
        all.push(demo.with(".param .align 16 .b8 pack[32]", |_, _| {
            vec![tilewright_emulator::Arg(TABLE.iter().flat_map(|word| word.to_le_bytes()).collect())]
        }));
    }
    all
}
