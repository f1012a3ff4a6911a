//! What the verifier refuses, one case a rule, with its words; and that `requirement` finds the lowest header.

use tilewright_ptx::{
    Address, Block, FunctionBuilder, Immediate, Item, Linkage, LoadError, ModuleBuilder, Operand, PtxVersion, RegId,
    Requirement, ScalarType, StateSpace, Statement, Target, Variable, inst, load, requirement, verify,
};

fn kernel(statements: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 g;\n\
         .func (.param .b32 o) f(.param .b32 a, .param .b32 b) {{ ret; }}\n.visible .entry k(.param .u64 x)\n{{\n\
         .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .u32 u; .reg .b64 %rd<8>; .reg .f32 %f<8>; \
         .reg .f16x2 hh; .shared .align 16 .b8 s[64];\n{statements}\nret;\n}}\n"
    )
}

fn refused(statements: &str, message: &str) {
    match load(&kernel(statements)) {
        Ok(_) => panic!("`{statements}` is accepted"),
        Err(LoadError::Parse(error)) => panic!("`{statements}`: {error}"),
        Err(LoadError::Verify(errors)) => {
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert!(all.iter().any(|text| text.contains(message)), "for `{statements}`: {all:?}");
        }
    }
}

fn accepted(statements: &str) {
    load(&kernel(statements)).unwrap_or_else(|error| panic!("`{statements}`: {error}"));
}

#[test]
fn operands_fit_their_types() {
    refused("add.u32 %r1, %rd1, %r2;", "operand 2: a .b64 register where the instruction takes .u32");
    refused("add.f32 %f1, u, %f2;", "a .u32 register where the instruction takes .f32");
    refused("add.f32 %f1, %f1, 1;", "1 is no .f32 constant");
    refused("add.u32 u, u, 1.0;", "is no .u32 constant");
    refused("mov.u16 %h1, 70000;", "70000 is no .u16 constant");
    accepted("mov.u32 %r1, 0xffffffffffffffff;");
    accepted("mov.u16 %h1, 0xffffffffffff8000;");
    refused("mov.u32 %r1, 0xffffffff00000000;", "is no .u32 constant");
    refused("add.f32 hh, %f1, %f1;", "a .f16x2 register where the instruction takes .f32");
    refused("cvt.rn.bf16x2.f32 u, %f1, %f1;", "a .u32 register where the instruction takes .bf16x2");
    refused("add.u32 %p1, %r1, %r1;", "a .pred register");
    refused("@%r1 add.u32 %r1, %r1, %r1;", "the guard is no predicate");
    refused("ld.global.v4.f32 {%f1, %f2}, [%rd1];", "2 elements where 4 are needed");
    refused("ld.global.u32 %h1, [%rd1];", "a .b16 register where the instruction takes .u32");
    refused("mov.b64 {%r1, %h1}, %rd1;", "a .b16 register where the instruction takes .b32");
    refused("mov.u64 %rd1, %tid.x;", "a type no wider than the special register");
    refused("add.u32 %r1, %tid.x, 1;", "expected a register or constant");
    refused("st.global.u32 %rd1, %r1;", "expected an address in brackets");
    refused("ld.global.u32 %r1, [%f1];", "a .f32 register");
    refused("bar.sync 16;", "16 is not in 0..15");
    refused("bar.sync 0, 33;", "33 is not a multiple of 32");
    refused("cp.async.cg.shared.global [s], [%rd1], 8;", "8 is not one of 16");
    refused("mbarrier.init.shared.b64 [s], 0;", "0 is not in 1..1048575");
    accepted(
        "ld.global.u8 %r1, [%rd1]; ld.global.b16 %f1, [%rd1]; cvt.u64.u32 %rd1, %tid.x; add.f32 %f1, %f1, 0f3F800000;",
    );
    accepted("ld.global.v2.u32 {%r1, _}, [%rd1]; selp.b32 %r0, 1, 2, !%p1; setp.eq.u32 _|%p1, %r0, %r0;");
}

#[test]
fn addresses_lie_in_their_space() {
    refused("ld.global.u32 %r1, [s];", "`s` is in .shared, the access is to .global");
    refused("ld.shared.u32 %r1, [g];", "`g` is in .global, the access is to .shared");
    refused("ld.global.u32 %r1, [x];", "`x` is in .param, the access is to .global");
    refused("st.param.u64 [x], %rd1;", "kernel parameter `x` is read-only");
    refused("ld.global.u32 %r1, [0];", "a constant address is allowed in .local only");
    refused("cvta.shared.u64 %rd1, g;", "`g` is in .global, the access is to .shared");
    accepted("ld.u32 %r1, [s]; ld.u32 %r1, [g+4]; ld.local.u32 %r1, [0]; mov.u32 %r1, s; cvta.shared.u64 %rd1, s;");
}

#[test]
fn calls_and_branches_have_targets() {
    refused("{ .param .b32 p; .param .b32 q; call (q), f, (p); }", "1 arguments and 1 results, the function 2 and 1");
    refused("call f;", "0 arguments and 0 results, the function 2 and 1");
    refused("T: .branchtargets A; A: bra T;", "label `T`");
    refused("A: brx.idx %r1, A;", "label `A`");
    refused("call %rd1, (%r1);", "`prototype of the call` is not declared here");
    accepted("T: .branchtargets A, B; brx.idx %r1, T; A: B: ret;");
    accepted("{ .param .b32 p; .param .b32 q; call (q), f, (p, p); }");
}

#[test]
fn versions_and_targets() {
    refused("wgmma.fence.sync.aligned;", "needs PTX 8.0 and sm_90a; the module has PTX 8.0 and sm_90");
    refused("fence.acquire.gpu;", "needs PTX 8.6 and sm_70");
    let old =
        kernel("mov.u32 %r1, %cluster_ctarank;").replace(".version 8.0", ".version 7.0").replace("sm_90", "sm_80");
    assert!(load(&old).unwrap_err().to_string().contains("needs PTX 7.8 and sm_90"));
    let early = kernel("").replace(".version 8.0", ".version 7.0");
    assert!(load(&early).unwrap_err().to_string().contains("`.target sm_90`: needs PTX 7.8"));
    let specific = kernel("wgmma.fence.sync.aligned;").replace("sm_90", "sm_100a").replace("8.0", "8.6");
    assert!(load(&specific).unwrap_err().to_string().contains("sm_90a"), "sm_90a features are not in sm_100a");
}

#[test]
fn addresses_have_64_bits() {
    let text = kernel("").replace(".address_size 64\n", "");
    assert!(load(&text).unwrap_err().to_string().contains("`.address_size` is 32; only 64 is supported"));
}

#[test]
fn declarations() {
    let declared = |line: &str| load(&format!(".version 8.0\n.target sm_80\n.address_size 64\n{line}\n"));
    let refused = |line: &str, message: &str| match declared(line) {
        Ok(_) => panic!("`{line}` is accepted"),
        Err(error) => assert!(error.to_string().contains(message), "`{line}`: {error}"),
    };
    refused(".global .align 2 .u32 x;", "alignment 2");
    refused(".global .v4 .f64 x;", "at most 16 bytes");
    refused(".shared .b8 x[99999999];", "99999999 bytes are more than 1048576");
    refused(".global .b8 x[4611686018427387904][4611686018427387904];", "bytes are more than");
    refused(".global .b8 x[];", "no size");
    refused(".global .b8 x[2] = {1, 2, 3};", "initial value");
    refused(".global .b8 x[2] = {256};", "initial value");
    refused(".shared .b32 x = 1;", "initial value");
    refused(".global .u32 x = 1.0;", "initial value");
    refused(".visible .entry k() .reqntid 1025 { ret; }", "values must be in 1..1024");
    refused(".visible .entry k() .maxntid 4294967295, 4294967295 { ret; }", "values must be in 1..1024");
    refused(".visible .entry k() .reqntid 32 .maxntid 32 { ret; }", "contradicts");
    refused(".func k() .reqntid 32 { ret; }", "for kernels only");
    refused(".visible .entry k() .reqnctapercluster 2 { ret; }", "needs PTX 7.8 and sm_90");
    refused(".visible .entry k(.param .b8 x[5000]) { ret; }", "needs PTX 8.1 and sm_70");
    refused(".visible .entry k(.param .b8 x[40000]) { ret; }", "40000 bytes are more than 32764");
    declared(".global .b8 x[] = {1, 2, 3};\n.extern .shared .b8 y[];\n.const .f32 z[2] = {0f3F800000, 1.0};").unwrap();
}

/// A kernel whose body is one block.
fn build(floor: Requirement, fill: impl FnOnce(&mut FunctionBuilder, &mut Block)) -> ModuleBuilder {
    let mut module = ModuleBuilder::new(floor);
    let mut function = FunctionBuilder::entry("k");
    let mut block = Block::new();
    fill(&mut function, &mut block);
    block.emit("ret", []);
    module.function(function.finish(block).unwrap());
    module
}

const FLOOR: Requirement = Requirement { version: PtxVersion::new(7, 0), target: Target::sm(80) };

#[test]
fn header_is_the_lowest_that_will_do() {
    let plain = build(FLOOR, |_, _| {}).finish().unwrap();
    assert_eq!((plain.version, plain.target), (FLOOR.version, FLOOR.target));
    let wgmma = build(FLOOR, |_, block| block.emit("wgmma.fence.sync.aligned", [])).finish().unwrap();
    assert_eq!((wgmma.version, wgmma.target), (PtxVersion::new(8, 0), Target::sm_a(90)));
    assert_eq!(wgmma.version.minimum_driver(), Some(12000));
    assert!(wgmma.target.runs_on(90) && !wgmma.target.runs_on(100));
    let elect = build(FLOOR, |f, block| {
        let (d, p) = (f.reg(ScalarType::B32), f.reg(ScalarType::Pred));
        block.emit("elect.sync", [Operand::pair(d, p), u32::MAX.into()]);
    });
    let elect = elect.finish().unwrap();
    assert_eq!((elect.version, elect.target), (PtxVersion::new(8, 0), Target::sm(90)));
    assert_eq!(requirement(&elect), Requirement { version: PtxVersion::new(8, 0), target: Target::sm(90) });
    // The `.target` word itself needs a version.
    let floor = Requirement { version: PtxVersion::new(7, 0), target: Target::sm(90) };
    assert_eq!(build(floor, |_, _| {}).finish().unwrap().version, PtxVersion::new(7, 8));
}

#[test]
fn built_modules_parse_back() {
    let mut module = ModuleBuilder::new(FLOOR);
    module.comment("two\nlines");
    let file = module.file("a\"b.rs");
    let dynamic = module.dynamic_shared("smem", 128);
    module.variable(Variable {
        init: Some(tilewright_ptx::Initializer::Imm(Immediate::Int(3))),
        linkage: Linkage::Visible,
        ..Variable::scalar("three", StateSpace::Global, ScalarType::U32)
    });
    let mut f = FunctionBuilder::entry("k");
    let map = f.param_bytes("map", 128, 64);
    let tile = f.shared("tile", ScalarType::F32, 256, 128);
    let (r, rd, fl, h, p) = (
        f.reg(ScalarType::U32),
        f.reg(ScalarType::U64),
        f.reg(ScalarType::F32),
        f.reg(ScalarType::Bf16),
        f.reg(ScalarType::Pred),
    );
    let (head, exit) = (f.label("loop"), f.label("exit!"));
    let mut inner = Block::new();
    inner.label(head);
    inner.emit("mul.f32", [fl.into(), fl.into(), f32::NEG_INFINITY.into()]);
    inner.emit("cvt.rn.bf16.f32", [h.into(), fl.into()]);
    inner.emit("st.shared.b16", [Address::reg(r).offset(-2).into(), h.into()]);
    inner.emit_if(p, true, "bra", [head.into()]);
    let mut outer = Block::new();
    outer.comment("start");
    outer.loc(file, 1, 2);
    outer.emit("mov.u32", [r.into(), tile.into()]);
    outer.emit("mov.u32", [r.into(), dynamic.into()]);
    outer.emit("mov.b64", [rd.into(), map.into()]);
    outer.emit("cp.async.ca.shared.global", [Address::reg(r).into(), Address::reg(rd).into(), 4.into(), p.into()]);
    outer.append(inner);
    outer.label(exit);
    outer.emit("ret", []);
    module.function(f.finish(outer).unwrap());
    let module = module.finish().unwrap();
    let text = module.to_string();
    let again = load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Comments are dropped by the parser; everything else is there.
    let without: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
    assert_eq!(again.to_string(), without);
    // The predicate chose the ignore-source form, which is younger.
    assert_eq!(module.version, PtxVersion::new(7, 5));
    assert!(text.contains("mul.f32 %f0, %f0, 0fFF800000;"), "{text}");
}

#[test]
fn mistakes_of_a_builder_come_out() {
    let mut f = FunctionBuilder::entry("k");
    let (r, d) = (f.reg(ScalarType::U32), f.reg(ScalarType::U64));
    let mut block = Block::new();
    block.emit("add.u32", [r.into(), r.into(), d.into()]);
    let error = f.clone().finish(block).unwrap_err().to_string();
    assert!(error.contains("operand 3: a .b64 register where the instruction takes .u32"), "{error}");
    let mut block = Block::new();
    block.emit("add.u33", [r.into()]);
    block.emit("sub.u33", [r.into()]);
    let error = f.clone().finish(block).unwrap_err().to_string();
    assert_eq!(error, "`add.u33`: no instruction has the modifier `.u33`");
    f.param("k", ScalarType::U32);
    assert_eq!(f.finish(Block::new()).unwrap_err().to_string(), "`k`: the name is taken or no PTX identifier");
}

#[test]
fn ids_of_another_function_are_refused() {
    let mut module = build(FLOOR, |_, _| {}).finish().unwrap();
    let bad = |module: &tilewright_ptx::Module, message: &str| {
        let errors = verify(module).unwrap_err();
        assert!(errors.iter().any(|error| error.to_string().contains(message)), "{errors:?}");
    };
    let stray = inst("mov.u32", [RegId(77).into(), 1.into()]).unwrap();
    module.functions[0].body.push(Statement::Inst(stray));
    bad(&module, "register 77 is not declared in this function");
    module.functions[0].body.clear();
    module.functions[0].body.push(Statement::Label(tilewright_ptx::LabelId(5)));
    bad(&module, "`label 5` is not declared here");
    module.functions[0].body.clear();
    module.items.push(Item::Variable(tilewright_ptx::VarId(9)));
    bad(&module, "`variable` is not declared here");
}

/// A function takes forms that others chose, but no operands that these do not take.
#[test]
fn forms_of_other_functions_are_for_like_operands() {
    let of = |ty: ScalarType, constant: i64| {
        let mut f = FunctionBuilder::entry("f");
        let (d, a) = (f.reg(ty), f.reg(ty));
        let number = Operand::from(Immediate::Int(constant));
        f.inst("shl.b32", vec![d.into(), a.into(), 1_i64.into()])
            .and(f.inst("add.s32", vec![d.into(), a.into(), number]))
    };
    for _ in 0..2 {
        assert!(of(ScalarType::B32, 5).is_ok());
        assert!(of(ScalarType::B32, 1 << 20).is_ok());
        assert!(of(ScalarType::B32, 1 << 40).is_err(), "a constant of more than 32 bits");
        assert!(of(ScalarType::B64, 5).is_err() && of(ScalarType::F32, 5).is_err(), "registers of another type");
    }
}
