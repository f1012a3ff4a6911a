//! Moves that pack and unpack: a register is its parts, the lowest first (9.7.9.4).

use std::fmt::Write as _;

use tilewright_emulator::{Launch, Memory, Options, Program};

use super::inputs::Random;

/// Bits of a register and of its parts.
const SHAPES: [(u32, u32); 7] = [(16, 8), (32, 16), (32, 8), (64, 32), (64, 16), (128, 64), (128, 32)];

/// Unpacks a register, packs its parts in the other order with and without a part left out, and moves it whole.
#[test]
fn packing_and_unpacking() {
    for (bits, part) in SHAPES {
        let count = (bits / part) as usize;
        let names = |prefix: &str| (0..count).map(|at| format!("%{prefix}{at}")).collect::<Vec<_>>();
        let (parts, reversed) = (names("a"), names("a").into_iter().rev().collect::<Vec<_>>());
        // Registers have at least 16 bits but for parts of 8.
        let mut body =
            format!(".reg .b{bits} %x, %y, %z; .reg .b{part} {}, {};\n", parts.join(", "), names("b").join(", "));
        let load = |body: &mut String, name: &str, at: u32| match bits {
            128 => {
                let _ = writeln!(
                    body,
                    ".reg .b64 %l{at}, %h{at}; ld.global.v2.b64 {{%l{at}, %h{at}}}, [%in]; mov.b128 {name}, {{%l{at}, %h{at}}};"
                );
            }
            _ => {
                let _ = writeln!(body, "ld.global.b{bits} {name}, [%in];");
            }
        };
        load(&mut body, "%x", 0);
        let _ = writeln!(
            body,
            "mov.b{bits} {{{}}}, %x;\nmov.b{bits} %y, {{{}}};\nmov.b{bits} %z, %y;",
            parts.join(", "),
            reversed.join(", ")
        );
        // The first part is not asked for.
        let rest: Vec<String> = std::iter::once("_".to_owned()).chain(names("b").into_iter().skip(1)).collect();
        let _ = writeln!(body, "mov.b{bits} {{{}}}, %z;", rest.join(", "));
        match bits {
            128 => body.push_str(".reg .b64 %u, %v; mov.b128 {%u, %v}, %z; st.global.v2.b64 [%out], {%u, %v};\n"),
            _ => {
                let _ = writeln!(body, "st.global.b{bits} [%out], %z;");
            }
        }
        for (at, name) in names("b").iter().enumerate().skip(1) {
            let _ = writeln!(body, "st.global.b{part} [%out+{}], {name};", 16 + at * part as usize / 8);
        }
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
             .reg .b64 %in, %out; .reg .b32 %i;\nmov.u32 %i, %tid.x; ld.param.u64 %in, [in]; mad.wide.u32 %in, %i, 16, %in;\n\
             ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, 32, %out;\n{body}ret;\n}}\n"
        );
        let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut random = Random(u64::from(bits * part));
        let input: Vec<u8> = (0..32 * 16).map(|_| random.next() as u8).collect();
        let memory = Memory::new(1 << 16);
        let (from, to) = (memory.alloc(512, "in").unwrap(), memory.alloc(1024, "out").unwrap());
        memory.write(from, &input).unwrap();
        memory.fill(to, 1024, 0).unwrap();
        let launch = Launch {
            entry: "k".to_owned(),
            grid: [1, 1, 1],
            block: [32, 1, 1],
            args: vec![from.into(), to.into()],
            ..Launch::default()
        };
        let report = program.launch(&launch, &memory, &Options::default()).unwrap();
        assert!(report.findings.is_empty(), "{report}\n{text}");
        let mut output = [0; 1024];
        memory.read(to, &mut output).unwrap();
        for (input, output) in input.chunks_exact(16).zip(output.chunks_exact(32)) {
            let (bytes, part) = (bits as usize / 8, part as usize / 8);
            let expected: Vec<u8> = input[..bytes].chunks_exact(part).rev().flatten().copied().collect();
            assert_eq!(&output[..bytes], &expected[..], "{text}");
            assert_eq!(&output[16 + part..16 + bytes], &expected[part..], "{text}");
        }
    }
}
