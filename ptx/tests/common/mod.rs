//! Instances of every form of the instruction table, as PTX text, and a function body that declares what they mention.

use tilewright_ptx::FlagView as _;
use tilewright_ptx::isa::{Count, Form, OperandKind, OperandSpec, Presence, all_forms};
use tilewright_ptx::{Modifier, Requirement, ScalarType, StateSpace, TensorRank};

/// One instruction of a form.
pub struct Instance {
    /// Its text with the semicolon.
    pub text: String,
    /// What the table says that it needs.
    pub need: Requirement,
    /// Whether it stands alone: not in the middle of a call sequence.
    pub alone: bool,
}

/// Above this many combinations of modifiers, only one modifier at a time varies. With an assembler to ask, more are
/// tried.
fn full_product() -> usize {
    if std::env::var_os("PTXAS").is_some() { 700 } else { 48 }
}

/// Instances that together have every modifier of every form, and every optional operand.
pub fn instances() -> Vec<Instance> {
    let mut all = Vec::new();
    for form in all_forms() {
        for modifiers in choices(form) {
            let optional = form.operands.iter().filter(|spec| spec.presence == Presence::Optional).count();
            for dropped in 0..=optional {
                let enabled = form.operands.iter().filter(|spec| match &spec.presence {
                    Presence::WithAny(any) => any.iter().any(|modifier| modifiers.contains(modifier)),
                    _ => true,
                });
                let mut left = optional - dropped;
                let specs: Vec<&OperandSpec> = enabled
                    .filter(|spec| {
                        let keep = spec.presence != Presence::Optional || left > 0;
                        left -= usize::from(keep && spec.presence == Presence::Optional);
                        keep
                    })
                    .collect();
                let vectors = if specs.iter().any(|spec| is_pack(spec)) { 3 } else { 1 };
                for packed in 0..vectors {
                    if let Some(instance) = instance(form, &modifiers, &specs, packed) {
                        all.push(instance);
                    }
                }
            }
        }
    }
    // Parse the instructions in their surroundings, many at a time, to learn what they need.
    for chunk in all.chunks_mut(CHUNK) {
        let lines: Vec<&str> = chunk.iter().map(|instance| instance.text.as_str()).collect();
        let (text, first) = module_of("8.8", "sm_90a", &lines);
        let module = tilewright_ptx::parse(&text).unwrap_or_else(|error| {
            panic!("{error}: {:?}", (error.line as usize).checked_sub(first).and_then(|line| lines.get(line)))
        });
        let mut needs = vec![None; chunk.len()];
        module.functions.last().unwrap().for_each_inst(&mut |inst| {
            if let Some(need) = (inst.line as usize).checked_sub(first).and_then(|line| needs.get_mut(line)) {
                *need = Some(inst.requirement());
            }
        });
        for (instance, need) in chunk.iter_mut().zip(needs) {
            instance.need = need.unwrap_or_else(|| panic!("`{}` was not found again", instance.text));
        }
    }
    all
}

fn is_pack(spec: &OperandSpec) -> bool {
    matches!(spec.kind, OperandKind::Pack | OperandKind::AnyPack)
}

/// Combinations of modifiers: all when they are few, else every alternative once, alone and with everything optional
/// present.
fn choices(form: &Form) -> Vec<Vec<Modifier>> {
    let counts: Vec<usize> =
        form.slots.iter().map(|slot| slot.alternatives.len() + usize::from(slot.optional)).collect();
    let product = counts.iter().try_fold(1usize, |product, count| product.checked_mul(*count));
    let pick = |indices: &[usize]| -> Vec<Modifier> {
        let picks = form.slots.iter().zip(indices);
        picks.filter_map(|(slot, index)| slot.alternatives.get(*index).map(|(modifier, _)| *modifier)).collect()
    };
    let mut chosen = Vec::new();
    if product.is_some_and(|product| product <= full_product()) {
        let mut indices = vec![0; counts.len()];
        loop {
            chosen.extend(Some(pick(&indices)).filter(|modifiers| form.arrange(modifiers, false).is_some()));
            let Some(next) = (0..counts.len()).find(|slot| indices[*slot] + 1 < counts[*slot]) else { break };
            indices[next] += 1;
            indices[..next].fill(0);
        }
        return chosen;
    }
    let bare: Vec<usize> =
        form.slots.iter().map(|slot| if slot.optional { slot.alternatives.len() } else { 0 }).collect();
    let full: Vec<usize> = vec![0; counts.len()];
    for base in [bare, full] {
        for (slot, count) in counts.iter().enumerate() {
            for index in 0..*count {
                let mut indices = base.clone();
                indices[slot] = index;
                chosen.push(pick(&indices));
            }
        }
    }
    chosen.sort();
    chosen.dedup();
    chosen.retain(|modifiers| form.arrange(modifiers, false).is_some());
    chosen
}

/// `packed`: 1 writes a vector, 2 reads one, where the form allows it.
fn instance(form: &'static Form, modifiers: &[Modifier], specs: &[&OperandSpec], packed: usize) -> Option<Instance> {
    let mut operands = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        operands.push(operand(form, modifiers, spec, index, packed)?);
    }
    let head: String = modifiers.iter().map(|modifier| format!(".{modifier}")).collect();
    let text = format!("{}{head} {};", form.mnemonic, operands.join(", ")).replace(" ;", ";");
    let first_space = modifiers.iter().find_map(space_of);
    let param = first_space.is_some_and(|space| space.base() == StateSpace::Param);
    let control = matches!(form.mnemonic, "call" | "ret" | "exit" | "trap");
    let stores_param = param && (form.mnemonic == "st" || first_space == Some(StateSpace::ParamFunc));
    Some(Instance { text, need: Requirement::ANCIENT, alone: !control && !stores_param })
}

fn space_of(modifier: &Modifier) -> Option<StateSpace> {
    match modifier {
        Modifier::Space(space) => Some(*space),
        _ => None,
    }
}

fn reg(ty: ScalarType, number: usize) -> String {
    let prefix = match (ty, ty.bits()) {
        (ScalarType::Pred, _) => "%p",
        (ScalarType::F32, _) => "%f",
        (ScalarType::F64, _) => "%fd",
        (_, ..=16) => "%h",
        (_, ..=32) => "%r",
        (_, ..=64) => "%rd",
        _ => "%rq",
    };
    format!("{prefix}{number}")
}

fn operand(form: &Form, modifiers: &[Modifier], spec: &OperandSpec, index: usize, packed: usize) -> Option<String> {
    let ty = form.operand_type(spec, modifiers);
    let number = 8 * index;
    let vector = |ty: ScalarType, count: usize| {
        let elements: Vec<String> = (0..count).map(|element| reg(ty, number + element)).collect();
        format!("{{{}}}", elements.join(", "))
    };
    if let Some(count) = form.operand_count(spec, modifiers) {
        return Some(vector(ty?, count));
    }
    assert!(spec.count == Count::Scalar || spec.count == Count::Vector, "{}", form.syntax);
    Some(match &spec.kind {
        OperandKind::Imm(rule) => rule.example().to_string(),
        OperandKind::Sink => "_".to_owned(),
        OperandKind::Address(space) => {
            let space = space.or_else(|| modifiers.iter().find_map(space_of));
            match space.map(StateSpace::base) {
                Some(StateSpace::Shared) => "[%r62]".to_owned(),
                Some(StateSpace::Param) => "[prm]".to_owned(),
                Some(StateSpace::Const) => "[cvar]".to_owned(),
                Some(StateSpace::Local) => "[lvar]".to_owned(),
                _ => "[%rd62+16]".to_owned(),
            }
        }
        OperandKind::Tensor => {
            let rank = modifiers.iter().find_map(|modifier| match modifier {
                Modifier::Flag(flag) => TensorRank::from_flag(*flag),
                _ => None,
            })?;
            format!("[%rd62, {}]", vector(ScalarType::S32, rank.dimensions()))
        }
        OperandKind::Label => "L".to_owned(),
        OperandKind::Table if form.mnemonic == "brx" => "table".to_owned(),
        OperandKind::Table => return Some("proto".to_owned()),
        OperandKind::Callee if form.operands.iter().any(|spec| spec.kind == OperandKind::Table) => "callee".to_owned(),
        OperandKind::Callee => "callee".to_owned(),
        OperandKind::List => if spec.written { "(lret)" } else { "(larg)" }.to_owned(),
        OperandKind::Pair { .. } => format!("{}|%p{}", reg(ty?, number), number + 1),
        OperandKind::Pred => format!("!%p{number}"),
        OperandKind::Pack | OperandKind::AnyPack => {
            let wanted = packed == if spec.written { 1 } else { 2 };
            match (wanted, ty?.bits()) {
                (false, _) => reg(ty?, number),
                (true, 32) => vector(ScalarType::B16, 2),
                (true, 64) => vector(ScalarType::B32, 2),
                (true, 128) => vector(ScalarType::B64, 2),
                (true, _) => return None,
            }
        }
        OperandKind::Reg | OperandKind::Source | OperandKind::Any => reg(ty?, number),
    })
}

/// Instances in one module.
pub const CHUNK: usize = 500;

/// A module around these lines, and the number of the first line, from 1.
pub fn module_of(version: &str, target: &str, lines: &[&str]) -> (String, usize) {
    let text = module_text(version, target, &lines.join("\n"));
    let first = text.lines().position(|line| line == lines[0]).expect("the first line stands alone") + 1;
    (text, first)
}

/// A module whose kernel declares every register and name that instances mention, around these statements.
pub fn module_text(version: &str, target: &str, statements: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .const .align 16 .b8 cvar[64];\n\
         .func (.param .b32 r) callee(.param .b32 a) {{ ret; }}\n\
         .visible .entry k(.param .align 64 .b8 prm[128])\n.reqntid 128\n.minnctapersm 1\n{{\n\
         .reg .pred %p<64>;\n.reg .b16 %h<64>;\n.reg .b32 %r<256>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<512>;\n.reg .f64 %fd<64>;\n{quads}\
         .local .align 16 .b8 lvar[64];\n.shared .align 128 .b8 svar[4096];\n\
         .param .b32 larg;\n.param .b32 lret;\n\
         proto: .callprototype (.param .b32 _) _ (.param .b32 _);\ntable: .branchtargets L;\n{statements}\nL:\nret;\n}}\n",
        quads = if statements.contains("%rq") { ".reg .b128 %rq<64>;\n" } else { "" },
    )
}
