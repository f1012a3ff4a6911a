//! Matrix instructions against products of integers, element by element, with the fragments as the manual draws them
//! (9.7.14.5). Those of `wmma` have no layout of their own: what is loaded, multiplied and stored goes by memory.

use tilewright_ptx::isa::{Form, Matrix, Op};
use tilewright_ptx::{Modifier, ScalarType};

use super::demo::{Demo, ROW, head, spread};

/// The elements of a type: bits of each, and those of a small integer.
pub fn bits_of(ty: ScalarType) -> u32 {
    match ty {
        ScalarType::Tf32 => 32,
        ty => ty.bits(),
    }
}

pub fn encode(ty: ScalarType, value: i64) -> u64 {
    let float = value as f32;
    match ty {
        ScalarType::F16 => u64::from(half::f16::from_f32(float).to_bits()),
        ScalarType::Bf16 => u64::from(half::bf16::from_f32(float).to_bits()),
        ScalarType::F32 | ScalarType::Tf32 => u64::from(float.to_bits()),
        ScalarType::F64 => (value as f64).to_bits(),
        // Signs, exponents of bias 7 and 15, no fraction: of 0, 1 and 2.
        ScalarType::E4m3 => [0, 0x38, 0x40][value.unsigned_abs() as usize] | u64::from(value < 0) << 7,
        ScalarType::E5m2 => [0, 0x3c, 0x40][value.unsigned_abs() as usize] | u64::from(value < 0) << 7,
        ty => value as u64 & (u64::MAX >> (64 - bits_of(ty))),
    }
}

/// Small elements that a type has.
pub fn element(ty: ScalarType, seed: usize) -> i64 {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    match ty {
        ScalarType::B1 => (mixed % 2) as i64,
        ScalarType::U4 | ScalarType::U8 => (mixed % 3) as i64,
        _ => (mixed % 5) as i64 - 2,
    }
}

struct Product {
    m: usize,
    n: usize,
    k: usize,
    /// Of D, A, B, C.
    types: [ScalarType; 4],
    and: bool,
}

impl Product {
    fn new(modifiers: &[Modifier]) -> Product {
        let shape =
            modifiers.iter().find_map(|m| if let Modifier::Shape(shape) = m { Some(*shape) } else { None }).unwrap();
        let types: Vec<ScalarType> =
            modifiers.iter().filter_map(|m| if let Modifier::Type(ty) = m { Some(*ty) } else { None }).collect();
        // `wmma` of halves names D and C only.
        let types = match types[..] {
            [d, c] => [d, ScalarType::F16, ScalarType::F16, c],
            [d, a, b, c] => [d, a, b, c],
            _ => panic!("{types:?}"),
        };
        let and = modifiers.iter().any(|modifier| modifier.to_string() == "and");
        Product { m: shape.m.into(), n: shape.n.into(), k: shape.k.into(), types, and }
    }

    fn a(&self, row: usize, col: usize) -> i64 {
        element(self.types[1], row * self.k + col)
    }

    fn b(&self, row: usize, col: usize) -> i64 {
        element(self.types[2], 10_000 + row * self.n + col)
    }

    /// Of f64 so large that no sum is zero, whose sign depends on the rounding.
    fn c(&self, row: usize, col: usize) -> i64 {
        let far = if self.types[3] == ScalarType::F64 { 1000 } else { 0 };
        far + element(self.types[3], 20_000 + row * self.n + col)
    }

    fn d(&self, row: usize, col: usize) -> i64 {
        let term = |k: usize| {
            let (a, b) = (self.a(row, k), self.b(k, col));
            match (self.types[1] == ScalarType::B1, self.and) {
                (false, _) => a * b,
                (true, true) => a & b,
                (true, false) => a ^ b,
            }
        };
        self.c(row, col) + (0..self.k).map(term).sum::<i64>()
    }
}

/// Registers of a fragment and what each lane holds in them: of A and B, `e` elements of a register lie one after the
/// other along k.
fn factors(ty: ScalarType, rows: usize, k: usize, at: impl Fn(usize, usize) -> i64) -> Vec<Vec<u64>> {
    let bits = bits_of(ty).max(1) as usize;
    let each = if bits == 64 { 1 } else { 32 / bits };
    let tall = rows / 8;
    (0..32)
        .map(|lane| {
            let (group, thread) = (lane / 4, lane % 4);
            (0..rows * k / 32 / each)
                .map(|register| {
                    let row = group + 8 * (register % tall);
                    let col = register / tall * 4 * each + thread * each;
                    (0..each).fold(0, |word, i| word | encode(ty, at(row, col + i)) << (i * bits))
                })
                .collect()
        })
        .collect()
}

/// The same of C and D: two neighbours of a row in each lane.
fn sums(ty: ScalarType, m: usize, n: usize, at: impl Fn(usize, usize) -> i64) -> Vec<Vec<u64>> {
    (0..32)
        .map(|lane| {
            let place = |j: usize| (lane / 4 + 8 * (j / 2), lane % 4 * 2 + j % 2);
            let value = |j: usize| {
                let (row, col) = place(j);
                encode(ty, at(row, col))
            };
            let count = m * n / 32;
            match ty {
                ScalarType::F16 => (0..count / 2).map(|r| value(2 * r) | value(2 * r + 1) << 16).collect(),
                _ => (0..count).map(value).collect(),
            }
        })
        .collect()
}

/// Text that gives every lane its values of a fragment, from a table in global memory, and the registers' names.
fn fragment(name: &str, ty: ScalarType, values: &[Vec<u64>], tables: &mut String, body: &mut String) -> String {
    let count = values[0].len();
    let wide = ty == ScalarType::F64;
    let kind = if wide { "b64" } else { "b32" };
    let register = |at: usize| match ty {
        ScalarType::F64 => format!("%{name}d{at}"),
        _ => format!("%{name}{at}"),
    };
    let words: Vec<String> = values.iter().flatten().map(u64::to_string).collect();
    *tables += &format!(".global .align 8 .{kind} table_{name}[{}] = {{{}}};\n", words.len(), words.join(", "));
    let float = matches!(ty, ScalarType::F32 | ScalarType::F64);
    let declared = if float { format!("f{}", ty.bits()) } else { kind.to_owned() };
    *body +=
        &format!("mov.u64 %rd8, table_{name};\nmad.wide.u32 %rd8, %r0, {}, %rd8;\n", count * if wide { 8 } else { 4 });
    let names: Vec<String> = (0..count).map(register).collect();
    *body += &format!(".reg .{declared} {};\n", names.join(", "));
    for (at, name) in names.iter().enumerate() {
        *body += &format!("ld.global.{declared} {name}, [%rd8+{}];\n", at * if wide { 8 } else { 4 });
    }
    format!("{{{}}}", names.join(", "))
}

fn mma(form: &Form, modifiers: &[Modifier]) -> Demo {
    let product = Product::new(modifiers);
    let (mut tables, mut body) = (String::new(), String::new());
    let (m, n, k) = (product.m, product.n, product.k);
    let [d, a, b, c] = product.types;
    let left = fragment("a", a, &factors(a, m, k, |row, col| product.a(row, col)), &mut tables, &mut body);
    let right = fragment("b", b, &factors(b, n, k, |row, col| product.b(col, row)), &mut tables, &mut body);
    let third = fragment("c", c, &sums(c, m, n, |row, col| product.c(row, col)), &mut tables, &mut body);
    let want = sums(d, m, n, |row, col| product.d(row, col));
    let (count, wide) = (want[0].len(), d == ScalarType::F64);
    let declared =
        if matches!(d, ScalarType::F32 | ScalarType::F64) { format!("f{}", d.bits()) } else { "b32".to_owned() };
    let names: Vec<String> = (0..count).map(|at| format!("%result{at}")).collect();
    body += &format!(
        ".reg .{declared} {};\n{} {{{}}}, {left}, {right}, {third};\n",
        names.join(", "),
        head(form, modifiers),
        names.join(", ")
    );
    for (at, name) in names.iter().enumerate() {
        body += &format!("st.global.{declared} [%rd3+{}], {name};\n", at * if wide { 8 } else { 4 });
    }
    Demo::new(body, move |lane, _| {
        let words = want[lane].iter().flat_map(|value| [*value as u32, (*value >> 32) as u32]);
        if wide { words.collect() } else { words.step_by(2).collect() }
    })
    .after(tables)
}

/// A matrix in memory, densely, row by row or column by column; 4-bit and 1-bit elements are packed.
fn image(ty: ScalarType, rows: usize, cols: usize, by_rows: bool, at: impl Fn(usize, usize) -> i64) -> Vec<u8> {
    let bits = bits_of(ty) as usize;
    let mut bytes = vec![0; rows * cols * bits / 8];
    for row in 0..rows {
        for col in 0..cols {
            let place = if by_rows { row * cols + col } else { col * rows + row };
            let value = encode(ty, at(row, col));
            for bit in 0..bits {
                let to = place * bits + bit;
                bytes[to / 8] |= ((value >> bit & 1) as u8) << (to % 8);
            }
        }
    }
    bytes
}

const SPACES: [&str; 4] = ["", ".global", ".shared", ".shared::cta"];

/// The shape, types and layouts that go together in `wmma`: loads of A, B and C, the product, the store of D, each with
/// its modifiers.
fn wmma() -> Vec<Demo> {
    let mut all = Vec::new();
    for form in Op::Matrix(Matrix::WmmaMma).forms() {
        for (modifiers, first) in
            spread(form, |_| false).into_iter().flat_map(|m| (0..4).map(move |first| (m.clone(), first)))
        {
            let product = Product::new(&modifiers);
            let [d, a, b, c] = product.types;
            let layouts: Vec<bool> = modifiers
                .iter()
                .filter(|m| ["row", "col"].contains(&m.to_string().as_str()))
                .map(|m| m.to_string() == "row")
                .collect();
            let layouts = [layouts[0], layouts[1], first % 2 == 0, first < 2];
            let (m, n, k) = (product.m, product.n, product.k);
            let shape = format!("m{m}n{n}k{k}");
            let (mut tables, mut body) = (String::new(), String::new());
            let mut lists = Vec::new();
            for (name, ty, rows, cols, by_rows) in
                [("a", a, m, k, layouts[0]), ("b", b, k, n, layouts[1]), ("c", c, m, n, layouts[2])]
            {
                let bytes = image(ty, rows, cols, by_rows, |row, col| match name {
                    "a" => product.a(row, col),
                    "b" => product.b(row, col),
                    _ => product.c(row, col),
                });
                // In the space that this one is loaded from.
                let space = SPACES[(first + lists.len()) % 4];
                let words: Vec<String> = bytes
                    .chunks(4)
                    .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]).to_string())
                    .collect();
                tables +=
                    &format!(".global .align 128 .b32 table_{name}[{}] = {{{}}};\n", words.len(), words.join(", "));
                let (count, register) = registers(name, ty, m, n, k);
                let names: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
                body += &format!(".reg .{register} {};\nmov.u64 %rd8, table_{name};\n", names.join(", "));
                let address = match space {
                    "" => "%rd9",
                    ".global" => "%rd8",
                    _ => "%r9",
                };
                body += "cvta.global.u64 %rd9, %rd8;\n";
                if address == "%r9" {
                    // The warp copies it, word by word.
                    body += &format!(
                        "mov.u32 %r9, tile;\nadd.u32 %r9, %r9, {};\nmov.u32 %r10, %r0;\nN{name}:\nsetp.ge.u32 %p5, %r10, {words};\n@%p5 bra M{name};\n\
                         mad.wide.u32 %rd10, %r10, 4, %rd8;\nld.global.b32 %r11, [%rd10];\nmad.lo.u32 %r12, %r10, 4, %r9;\nst.shared.b32 [%r12], %r11;\n\
                         add.u32 %r10, %r10, 32;\nbra N{name};\nM{name}:\nbar.sync 0;\n",
                        lists.len() * 2048,
                        words = words.len()
                    );
                }
                let stride = if by_rows { cols } else { rows };
                let ty = if ty == ScalarType::B1 { "b1".to_owned() } else { ty.to_string() };
                body += &format!(
                    "wmma.load.{name}.sync.aligned.{}.{shape}{space}.{ty} {{{}}}, [{address}], {stride};\n",
                    if by_rows { "row" } else { "col" },
                    names.join(", ")
                );
                lists.push(format!("{{{}}}", names.join(", ")));
            }
            let (count, register) = registers("d", d, m, n, k);
            let names: Vec<String> = (0..count).map(|at| format!("%d{at}")).collect();
            let result = format!("{{{}}}", names.join(", "));
            body += &format!(
                ".reg .{register} {};\n{} {result}, {};\n",
                names.join(", "),
                head(form, &modifiers),
                lists.join(", ")
            );
            let stored = image(d, m, n, layouts[3], |row, col| product.d(row, col));
            let stride = if layouts[3] { n } else { m };
            let layout = if layouts[3] { "row" } else { "col" };
            let space = SPACES[first];
            let address = ["%rd1", "%rd1", "%r2", "%r2"][first];
            body += "bar.sync 0;\n";
            body +=
                &format!("wmma.store.d.sync.aligned.{layout}.{shape}{space}.{d} [{address}], {result}, {stride};\n");
            if address == "%r2" {
                body += &format!(
                    "bar.sync 0;\nmov.u32 %r10, %r0;\nND:\nsetp.ge.u32 %p5, %r10, {words};\n@%p5 bra MD;\nmad.wide.u32 %rd10, %r10, 4, %rd1;\n\
                     mad.lo.u32 %r12, %r10, 4, %r2;\nld.shared.b32 %r11, [%r12];\nst.global.b32 [%rd10], %r11;\nadd.u32 %r10, %r10, 32;\nbra ND;\nMD:\n",
                    words = stored.len() / 4
                );
            }
            all.push(
                Demo::new(body, move |thread, _| {
                    let bytes = stored.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
                    bytes.skip(thread * ROW).take(ROW).collect()
                })
                .after(tables),
            );
        }
    }
    all
}

/// Number and type of the registers of a `wmma` fragment (9.7.14.4.1).
fn registers(name: &str, ty: ScalarType, m: usize, n: usize, k: usize) -> (usize, &'static str) {
    let elements = match name {
        "a" => m * k,
        "b" => k * n,
        _ => m * n,
    } / 32;
    match ty {
        // Every element of A and B twice.
        ScalarType::F16 if matches!(name, "a" | "b") => (8, "b32"),
        ScalarType::F16 => (elements / 2, "b32"),
        ScalarType::Bf16 => (elements / 2, "b32"),
        ScalarType::F64 => (elements, "f64"),
        ScalarType::F32 => (elements, "f32"),
        ScalarType::S32 | ScalarType::Tf32 => (elements, "b32"),
        ty => (elements * ty.bits() as usize / 32, "b32"),
    }
}

/// The word of rows and columns that a lane holds of an 8 × 8 matrix whose element (r, c) is 8r + c + 100q.
fn held(q: usize, lane: usize, turned: bool) -> u32 {
    let element = |row: usize, col: usize| (100 * q + 8 * row + col) as u32;
    let (row, col) = (lane / 4, lane % 4 * 2);
    if turned {
        element(col, row) | element(col + 1, row) << 16
    } else {
        element(row, col) | element(row, col + 1) << 16
    }
}

/// Rows of matrices in shared memory: lane `l` writes row `l % 8` of matrix `l / 8` at 16 · l.
fn rows() -> String {
    let mut text = "mad.lo.u32 %r8, %r0, 16, %r2;\nshr.u32 %r9, %r0, 3;\nmul.lo.u32 %r9, %r9, 100;\nand.b32 %r10, %r0, 7;\n\
        mad.lo.u32 %r9, %r10, 8, %r9;\nmov.u64 %rd6, tile;\ncvta.shared.u64 %rd6, %rd6;\nmad.wide.u32 %rd6, %r0, 16, %rd6;\n"
        .to_owned();
    for pair in 0..4 {
        text += &format!(
            "add.u32 %r10, %r9, {};\nadd.u32 %r11, %r9, {};\nshl.b32 %r11, %r11, 16;\nor.b32 %r{}, %r10, %r11;\n",
            2 * pair,
            2 * pair + 1,
            12 + pair
        );
    }
    text
}

fn moves() -> Vec<Demo> {
    let mut all = Vec::new();
    let four = "{%r12, %r13, %r14, %r15}";
    for (matrix, store) in [(Matrix::Ldmatrix, false), (Matrix::Stmatrix, true)] {
        for form in Op::Matrix(matrix).forms() {
            for modifiers in spread(form, |_| false) {
                let head = head(form, &modifiers);
                let count = [1, 2, 4].into_iter().find(|count| head.contains(&format!(".x{count}"))).unwrap_or(1);
                let turned = head.contains("trans");
                let names: Vec<String> = (0..count).map(|at| format!("%r{}", 20 + at)).collect();
                let list = format!("{{{}}}", names.join(", "));
                let address = if head.contains("shared") { "%r8" } else { "%rd6" };
                let put =
                    names.iter().enumerate().map(|(at, name)| format!("st.global.b32 [%rd3+{}], {name};\n", 4 * at));
                let put: String = put.collect();
                if store {
                    // Each lane has what `ldmatrix` gives; afterwards shared memory has the rows.
                    let mut body = rows();
                    for (q, name) in names.iter().enumerate() {
                        let element = |row: &str, col: &str| {
                            format!("mad.lo.u32 %r30, {row}, 8, {col};\nadd.u32 %r30, %r30, {};\n", 100 * q)
                        };
                        let (row, col) = ("%r32", "%r33");
                        body += "shr.u32 %r32, %r0, 2;\nand.b32 %r33, %r0, 3;\nshl.b32 %r33, %r33, 1;\nadd.u32 %r34, %r33, 1;\n";
                        let (first, second) = if turned {
                            (element(col, row), element("%r34", row))
                        } else {
                            (element(row, col), element(row, "%r34"))
                        };
                        body += &format!(
                            "{first}mov.b32 {name}, %r30;\n{second}shl.b32 %r30, %r30, 16;\nor.b32 {name}, {name}, %r30;\n"
                        );
                    }
                    body += &format!(
                        "st.shared.v4.b32 [%r8], {{0, 0, 0, 0}};\nbar.warp.sync 0xffffffff;\n{head} [{address}], {list};\nbar.warp.sync 0xffffffff;\n\
                         ld.shared.v4.b32 {four}, [%r8];\nst.global.v4.b32 [%rd3], {four};\n"
                    );
                    all.push(Demo::new(body, move |lane, _| {
                        let word = |pair: usize| {
                            let first = (100 * (lane / 8) + 8 * (lane % 8) + 2 * pair) as u32;
                            if lane / 8 < count { first | (first + 1) << 16 } else { 0 }
                        };
                        (0..4).map(word).collect()
                    }));
                } else {
                    let body = format!(
                        "{}st.shared.v4.b32 [%r8], {four};\nbar.warp.sync 0xffffffff;\n{head} {list}, [{address}];\n{put}",
                        rows()
                    );
                    all.push(Demo::new(body, move |lane, _| (0..count).map(|q| held(q, lane, turned)).collect()));
                }
            }
        }
    }
    let body = format!(
        "{}st.shared.v4.b32 [%r8], {four};\nbar.warp.sync 0xffffffff;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r20}}, [%r8];\n\
         movmatrix.sync.aligned.m8n8.trans.b16 %r21, %r20;\nst.global.b32 [%rd3], %r21;\n",
        rows()
    );
    all.push(Demo::new(body, |lane, _| vec![held(0, lane, true)]));
    all
}

pub fn demos() -> Vec<Demo> {
    let mut all = moves();
    for form in Op::Matrix(Matrix::Mma).forms() {
        for modifiers in spread(form, |_| false) {
            all.push(mma(form, &modifiers));
        }
    }
    all.extend(wmma());
    all
}
