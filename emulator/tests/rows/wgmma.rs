//! Products by a warpgroup against products of integers, in every form and shape, with both operands in every layout
//! that their type has (PTX manual 9.7.15.5). The four instructions around one product are each needed.

use std::fmt::Write as _;

use tilewright_ptx::isa::{Form, Matrix, Op};
use tilewright_ptx::{Modifier, ScalarType};

use super::demo::{Demo, ROW, head, spread};
use super::matrix::{bits_of, element, encode};

/// Bytes of k in one instruction.
const DEPTH: usize = 32;

/// A matrix in shared memory: rows along m or n.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of a swizzle's span; 16 for none.
    span: usize,
    /// Rows are contiguous, not k.
    across: bool,
    /// Bytes of an element.
    bytes: usize,
}

impl Layout {
    /// Leading and stride offset: atoms of 8 rows (of k, if across) of a span, those along k one after the other.
    fn offsets(&self) -> [usize; 2] {
        match (self.span, self.across) {
            (16, _) => [128, 256],
            (span, false) => [0, 8 * span],
            (span, true) => [16 * span, 8 * span],
        }
    }

    /// Where an element is.
    fn place(&self, x: usize, k: usize) -> usize {
        let Layout { span, across, bytes } = *self;
        let at = match (span, across) {
            (16, false) => x / 8 * 256 + k * bytes / 16 * 128 + x % 8 * 16 + k * bytes % 16,
            (16, true) => x / 8 * 256 + k / 8 * 128 + k % 8 * 16 + x % 8 * 2,
            (_, false) => x * span + k * bytes,
            (_, true) => {
                let block = span / 2;
                x / block * 16 * span + k * span + x % block * 2
            }
        };
        // One, two or three bits of the chunk's number are combined with those of the 128-byte row's.
        at ^ ((at / 128 % (span / 16)) * 16)
    }

    fn image(&self, ty: ScalarType, rows: usize, at: impl Fn(usize, usize) -> i64) -> Vec<u8> {
        let depth = DEPTH / self.bytes;
        let mut bytes = Vec::new();
        for (x, k) in (0..rows).flat_map(|x| (0..depth).map(move |k| (x, k))) {
            let place = self.place(x, k);
            bytes.resize(bytes.len().max(place + self.bytes), 0);
            bytes[place..place + self.bytes].copy_from_slice(&encode(ty, at(x, k)).to_le_bytes()[..self.bytes]);
        }
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    /// The bits of a descriptor but for the address.
    fn descriptor(&self) -> u64 {
        let [leading, stride] = self.offsets().map(|bytes| bytes as u64 / 16);
        let mode = [0, 3, 2, 1][self.span.trailing_zeros() as usize - 4];
        leading << 16 | stride << 32 | mode << 62
    }
}

/// Row and column of D of register `i` of a thread, or of the two halves that a register holds.
fn of_d(thread: usize, i: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2)
}

/// What a thread adds to.
fn third(thread: usize, i: usize) -> i64 {
    ((thread * 7 + i * 3) % 5) as i64
}

/// Gives register `i` of D what it is added to.
fn before_sum(d: ScalarType, i: usize, name: &str) -> String {
    let value = |i: usize| format!("mad.lo.u32 %r10, %r0, 7, {};\nrem.u32 %r10, %r10, 5;\n", 3 * i);
    match d {
        ScalarType::F32 => format!("{}cvt.rn.f32.u32 {name}, %r10;\n", value(i)),
        ScalarType::F16 => format!(
            "{}cvt.rn.f16.u32 %h0, %r10;\n{}cvt.rn.f16.u32 %h1, %r10;\nmov.b32 {name}, {{%h0, %h1}};\n",
            value(2 * i),
            value(2 * i + 1)
        ),
        _ => format!("{}mov.b32 {name}, %r10;\n", value(i)),
    }
}

/// Puts a table from global memory into shared memory, by 128 threads.
fn to_shared(name: &str, words: usize, body: &mut String) {
    let _ = write!(
        body,
        "mov.u64 %rd8, table_{name};\nmov.u32 %r9, {name};\nmov.u32 %r10, %r0;\nN{name}:\nsetp.ge.u32 %p5, %r10, {words};\n@%p5 bra M{name};\n\
         mad.wide.u32 %rd10, %r10, 4, %rd8;\nld.global.b32 %r11, [%rd10];\nmad.lo.u32 %r12, %r10, 4, %r9;\nst.shared.b32 [%r12], %r11;\n\
         add.u32 %r10, %r10, 128;\nbra N{name};\nM{name}:\n"
    );
}

fn table(name: &str, bytes: &[u8]) -> String {
    let words = bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]).to_string());
    let words: Vec<String> = words.collect();
    format!(".global .align 128 .b32 table_{name}[{}] = {{{}}};\n", words.len(), words.join(", "))
}

fn demo(form: &Form, modifiers: &[Modifier], number: usize) -> Demo {
    let shape =
        modifiers.iter().find_map(|m| if let Modifier::Shape(shape) = m { Some(*shape) } else { None }).unwrap();
    let types: Vec<ScalarType> =
        modifiers.iter().filter_map(|m| if let Modifier::Type(ty) = m { Some(*ty) } else { None }).collect();
    let [d, a, b] = types[..] else { panic!("{types:?}") };
    let (n, k) = (usize::from(shape.n), usize::from(shape.k));
    let bytes = bits_of(a) as usize / 8;
    let (halves, integer) = (bytes == 2, d == ScalarType::S32);
    // Every combination of layouts comes about by and by.
    let spans = [16, 32, 64, 128];
    let layout = |turn: usize| Layout { span: spans[turn % 4], across: halves && turn / 4 % 2 == 1, bytes };
    let in_registers = form.syntax.contains("a:b32");
    let left = if in_registers { Layout { span: 16, across: false, bytes } } else { layout(number) };
    let right = layout(number / 3 + 1);
    let (first, second) = (move |x, k| element(a, 64 * k + x), move |x, k| element(b, 10_000 + 256 * k + x));
    let (image_a, image_b) = (left.image(a, 64, first), right.image(b, n, second));
    let before = table("ma", &image_a) + &table("mb", &image_b);
    let mut body =
        format!(".shared .align 1024 .b8 ma[{}]; .shared .align 1024 .b8 mb[{}];\n", image_a.len(), image_b.len());
    to_shared("ma", image_a.len() / 4, &mut body);
    to_shared("mb", image_b.len() / 4, &mut body);
    body += "fence.proxy.async.shared::cta;\nbar.sync 0;\n";

    let count = if d == ScalarType::F16 { n / 4 } else { n / 2 };
    let declared = if d == ScalarType::F32 { "f32" } else { "b32" };
    let names: Vec<String> = (0..count).map(|i| format!("%sum{i}")).collect();
    let _ = write!(body, ".reg .{declared} %sum<{count}>;\n.reg .b32 %factor<4>;\n");
    for (i, name) in names.iter().enumerate() {
        body += &before_sum(d, i, name);
    }
    let mut operand_a = "%rd12".to_owned();
    if in_registers {
        // Register j holds words of rows 8 (j mod 2) further down, and of the second 16 bytes from j = 2 on.
        body += "shr.u32 %r13, %r0, 5;\nand.b32 %r14, %r0, 31;\nshr.u32 %r15, %r14, 2;\nmad.lo.u32 %r13, %r13, 16, %r15;\nand.b32 %r14, %r14, 3;\n";
        for j in 0..4 {
            let _ = write!(
                body,
                "add.u32 %r15, %r13, {};\nshr.u32 %r16, %r15, 3;\nand.b32 %r15, %r15, 7;\nmul.lo.u32 %r16, %r16, 256;\nmad.lo.u32 %r16, %r15, 16, %r16;\n\
                 mad.lo.u32 %r16, %r14, 4, %r16;\nmov.u32 %r17, ma;\nadd.u32 %r16, %r16, %r17;\nld.shared.b32 %factor{j}, [%r16+{}];\n",
                8 * (j % 2),
                128 * (j / 2)
            );
        }
        operand_a = "{%factor0, %factor1, %factor2, %factor3}".to_owned();
    }
    for (name, register, layout) in [("ma", "%rd12", left), ("mb", "%rd13", right)] {
        let _ = write!(
            body,
            "mov.u32 %r17, {name};\nshr.u32 %r17, %r17, 4;\ncvt.u64.u32 {register}, %r17;\nor.b64 {register}, {register}, {};\n",
            layout.descriptor() as i64
        );
    }
    let add = number % 3 != 2;
    let predicate = ["1", "%p6", "0"][number % 3];
    let signs = if integer { [1, 1] } else { [[1, 1], [-1, 1], [1, -1], [-1, -1]][number % 4] };
    let mut rest = format!("{operand_a}, %rd13, {predicate}");
    if !integer {
        let _ = write!(rest, ", {}, {}", signs[0], signs[1]);
    }
    if halves && !in_registers {
        let _ = write!(rest, ", {}", u8::from(left.across));
    }
    if halves {
        let _ = write!(rest, ", {}", u8::from(right.across));
    }
    let _ = write!(
        body,
        "setp.ge.u32 %p6, %r0, 0;\nwgmma.fence.sync.aligned;\n{} {{{}}}, {rest};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        head(form, modifiers),
        names.join(", ")
    );
    // Word j of the row is made of registers j, j + 16, and so on.
    let words = count.min(ROW);
    for j in 0..words {
        body += "mov.u32 %r20, 0;\n";
        for name in names.iter().skip(j).step_by(ROW) {
            let _ = write!(body, "mov.b32 %r21, {name};\nmad.lo.u32 %r20, %r20, 31, %r21;\n");
        }
        let _ = writeln!(body, "st.global.b32 [%rd3+{}], %r20;", 4 * j);
    }
    let sign = signs[0] * signs[1];
    let want = move |thread: usize, _: &[u32]| {
        let sum = |i: usize| {
            let (row, column) = of_d(thread, i);
            let products: i64 = (0..k).map(|l| first(row, l) * second(column, l)).sum();
            encode(d, sign * products + if add { third(thread, i) } else { 0 }) as u32
        };
        let register = |i: usize| match d {
            ScalarType::F16 => sum(2 * i) | sum(2 * i + 1) << 16,
            _ => sum(i),
        };
        let mixed =
            |j: usize| (j..count).step_by(ROW).fold(0u32, |all, i| all.wrapping_mul(31).wrapping_add(register(i)));
        (0..words).map(mixed).collect()
    };
    Demo::new(body, want).of(128).after(before)
}

pub fn demos() -> Vec<Demo> {
    let mut all = Vec::new();
    for form in Op::Matrix(Matrix::WgmmaMmaAsync).forms() {
        for modifiers in spread(form, |_| false) {
            let number = all.len();
            all.push(demo(form, &modifiers, number));
        }
    }
    all
}
