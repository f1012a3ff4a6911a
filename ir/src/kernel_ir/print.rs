//! Text of a kernel for readers: `explain`, `inspect`, tests. Values are numbered in the order of the text.
//!
//! This file is longer than 500 lines: one arm a statement and an operation.

use std::fmt::{self, Display, Formatter, Write};

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};

use super::{
    AtomicOp, AtomicUpdate, Buffer, CpAsync, Evict, Factor, IndexOp, Kernel, Matrices, Matrix, Mbarrier, MbarrierId,
    Memory, MmaSync, Op, ParameterKind, Receivers, RegionId, Role, Sharing, Shift, Statement, StatementKind,
    TensorPart, Type, UnaryOp, Value, ValueId, VariableId, Wgmma, Workspace,
};

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut names = vec![u32::MAX; self.values.len()];
        let mut next = 0;
        number(self, Self::BODY, &mut names, &mut next);
        let signature = &self.signature;
        write!(f, "kernel {}(", signature.name)?;
        for (n, parameter) in signature.parameters.iter().enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            let (prefix, suffix) = match parameter.kind {
                ParameterKind::Scalar => ("", ""),
                ParameterKind::Tensor { written: false } => ("", "[]"),
                ParameterKind::Tensor { written: true } => ("mut ", "[]"),
            };
            write!(f, "{separator}{prefix}{}: {}{suffix}", parameter.name, parameter.element)?;
        }
        for (n, dim) in signature.dims.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { "; " } else { ", " }, dim.name)?;
        }
        write!(f, ") threads {}", signature.threads)?;
        if signature.cluster > 1 {
            write!(f, " clusters of {}", signature.cluster)?;
        }
        writeln!(f, " {{")?;
        for (n, buffer) in self.buffers.iter().enumerate() {
            let Buffer { name, element, elements, alignment, slots, sharing } = buffer;
            let slots = if *slots > 1 { format!("{slots} slots of ") } else { String::new() };
            let place = match self.alias_of[n].index() {
                other if other == n => match self.parts[n] {
                    Some(workspace) => format!(", in workspace {}", self.workspaces[usize::from(workspace)].name),
                    None => String::new(),
                },
                other => format!(", in the memory of {}", self.buffers[other].name),
            };
            let whose = match sharing {
                Sharing::Thread => ", each element of one thread",
                Sharing::Warp => ", each element of one warp",
                Sharing::Warpgroup => ", each element of one warpgroup",
                Sharing::Block => "",
            };
            let memory = if self.parts[n].is_some() { "part" } else { "shared" };
            writeln!(f, "    {memory} {name}: {slots}{element}[{elements}] aligned {alignment}{whose}{place}")?;
        }
        for Workspace { name, element, zeroed } in &self.workspaces {
            writeln!(f, "    workspace {name}: {element}{}", if *zeroed { ", zero" } else { "" })?;
        }
        Printer { kernel: self, names, line: 0 }.region(f, Self::BODY, 1)?;
        writeln!(f, "}}")
    }
}

/// Numbers values in the order in which the text binds them.
fn number(kernel: &Kernel, region: RegionId, names: &mut [u32], next: &mut u32) {
    fn name(value: ValueId, names: &mut [u32], next: &mut u32) {
        names[value.index()] = *next;
        *next += 1;
    }
    for statement in &kernel.region(region).statements {
        match &statement.kind {
            StatementKind::Let(value) => name(*value, names, next),
            StatementKind::Load(load) | StatementKind::LoadDsmem { load, .. } => {
                load.results().for_each(|value| name(value, names, next));
            }
            StatementKind::LoadMatrix(load) => load.results().for_each(|value| name(value, names, next)),
            StatementKind::Shuffle { result, .. } => name(*result, names, next),
            StatementKind::LastBlockTicket { last: result, .. } | StatementKind::BarRedOr { result, .. } => {
                name(*result, names, next)
            }
            StatementKind::Loop(l) => {
                name(l.index, names, next);
                number(kernel, l.body, names, next);
            }
            StatementKind::If(branch) => {
                number(kernel, branch.then, names, next);
                if let Some(otherwise) = branch.otherwise {
                    number(kernel, otherwise, names, next);
                }
            }
            StatementKind::Elect(part) => number(kernel, *part, names, next),
            StatementKind::Roles(roles) => roles.iter().for_each(|role| number(kernel, role.body, names, next)),
            StatementKind::Declare(..)
            | StatementKind::Set(..)
            | StatementKind::Store(_)
            | StatementKind::StoreMatrix(_)
            | StatementKind::StoreDsmemAll(_)
            | StatementKind::AtomicUpdate(_)
            | StatementKind::BarSync
            | StatementKind::BarrierCluster
            | StatementKind::BarSyncWarpgroup
            | StatementKind::BarWarpSync
            | StatementKind::LifetimeStart { .. }
            | StatementKind::CpAsync(_)
            | StatementKind::CpAsyncCommitGroup
            | StatementKind::GridDependencyWait
            | StatementKind::GridDependencyLaunch
            | StatementKind::CpAsyncWaitGroup { .. }
            | StatementKind::MbarrierExpectTx { .. }
            | StatementKind::MbarrierArrive { .. }
            | StatementKind::CpAsyncMbarrierArrive { .. }
            | StatementKind::BulkCopy(_)
            | StatementKind::MbarrierWait { .. }
            | StatementKind::FenceProxyAsync
            | StatementKind::BulkCommitGroup
            | StatementKind::BulkWaitGroupRead { .. }
            | StatementKind::Wgmma(_)
            | StatementKind::MmaSync(_)
            | StatementKind::WgmmaFence
            | StatementKind::WgmmaCommitGroup
            | StatementKind::WgmmaWaitGroup { .. } => {}
        }
    }
}

struct Printer<'a> {
    kernel: &'a Kernel,
    names: Vec<u32>,
    line: u32,
}

impl Printer<'_> {
    fn region(&mut self, f: &mut Formatter<'_>, region: RegionId, indent: usize) -> fmt::Result {
        let kernel = self.kernel;
        kernel.region(region).statements.iter().try_for_each(|statement| self.statement(f, statement, indent))
    }

    #[expect(clippy::too_many_lines, reason = "one arm a statement")]
    fn statement(&mut self, f: &mut Formatter<'_>, statement: &Statement, indent: usize) -> fmt::Result {
        let pad = "    ".repeat(indent);
        if statement.line != self.line {
            self.line = statement.line;
            writeln!(f, "{pad}// statement {}", self.line)?;
        }
        f.write_str(&pad)?;
        match &statement.kind {
            StatementKind::Let(value) => {
                let Value { op, ty, .. } = *self.kernel.value(*value);
                writeln!(f, "{}: {ty} = {}", self.name(*value), self.op(op))
            }
            StatementKind::Declare(variable, value) => {
                writeln!(f, "var v{}: {} = {}", variable.0, self.ty(*value), self.name(*value))
            }
            StatementKind::Set(variable, value) => writeln!(f, "v{} = {}", variable.0, self.name(*value)),
            StatementKind::Load(load) | StatementKind::LoadDsmem { load, .. } => {
                let results: Vec<_> = load.results().collect();
                let element = self.ty(load.first);
                write!(f, "{}: {element} = {}", self.list(&results), self.place(load.memory, load.offset))?;
                if let StatementKind::LoadDsmem { rank, .. } = statement.kind {
                    write!(f, " of block {} of the cluster", self.name(rank))?;
                }
                if let Some(predicate) = load.predicate {
                    write!(f, " if {} else {}", self.name(predicate), self.list(&load.otherwise))?;
                }
                writeln!(f)
            }
            StatementKind::LoadMatrix(load) => {
                let results: Vec<_> = load.results().collect();
                writeln!(f, "{} = {}", self.list(&results), self.matrices(load.from))
            }
            StatementKind::StoreMatrix(store) => {
                writeln!(f, "{} = {}", self.matrices(store.to), self.list(&store.values))
            }
            StatementKind::Store(store) => {
                writeln!(f, "{} = {}", self.place(store.memory, store.offset), self.list(&store.values))
            }
            StatementKind::StoreDsmemAll(store) => {
                let (place, values) = (self.place(store.memory, store.offset), self.list(&store.values));
                writeln!(f, "{place} of all blocks of the cluster = {values}")
            }
            StatementKind::Loop(l) => {
                let cuts: String = l.cuts.iter().map(|cut| format!(", cut at {}", self.name(*cut))).collect();
                writeln!(f, "for {} in 0..{}{cuts} {{", self.name(l.index), self.name(l.count))?;
                self.region(f, l.body, indent + 1)?;
                writeln!(f, "{pad}}}")
            }
            StatementKind::If(branch) => {
                writeln!(f, "if {} {{", self.name(branch.condition))?;
                self.region(f, branch.then, indent + 1)?;
                if let Some(otherwise) = branch.otherwise {
                    writeln!(f, "{pad}}} else {{")?;
                    self.region(f, otherwise, indent + 1)?;
                }
                writeln!(f, "{pad}}}")
            }
            StatementKind::BarSync => writeln!(f, "sync"),
            StatementKind::BarSyncWarpgroup => writeln!(f, "sync warpgroup"),
            StatementKind::BarWarpSync => writeln!(f, "sync warp"),
            StatementKind::BarrierCluster => writeln!(f, "sync cluster"),
            StatementKind::CpAsync(CpAsync { parameter, from, buffer, to, lanes, predicate }) => {
                let (from, to) =
                    (self.place(Memory::Parameter(*parameter), *from), self.place(Memory::Buffer(*buffer), *to));
                let when = predicate.map_or_else(String::new, |p| format!(", zero unless {}", self.name(p)));
                writeln!(f, "fetch {lanes} of {from} to {to}{when}")
            }
            StatementKind::CpAsyncCommitGroup => writeln!(f, "commit fetches"),
            StatementKind::GridDependencyWait => writeln!(f, "await launches"),
            StatementKind::GridDependencyLaunch => writeln!(f, "allow launches"),
            StatementKind::CpAsyncWaitGroup { pending } => writeln!(f, "await fetches of all but {pending} commits"),
            StatementKind::LifetimeStart { buffer, slot } => {
                let of = self.kernel.buffers.get(buffer.index());
                let name = of.map_or("?", |b| b.name.as_str());
                let slot =
                    if of.is_some_and(|b| b.slots > 1) { format!(" slot {}", self.name(*slot)) } else { String::new() };
                writeln!(f, "renew {name}{slot}")
            }
            StatementKind::Shuffle { value, mask, result } => {
                let (result, ty, value) = (self.name(*result), self.ty(*result), self.name(*value));
                writeln!(f, "{result}: {ty} = {value} of lane ^ {mask}")
            }
            StatementKind::AtomicUpdate(AtomicUpdate { memory, offset, op, value }) => {
                let op = match op {
                    AtomicOp::Add => "+=",
                    AtomicOp::Max => "max=",
                    AtomicOp::Min => "min=",
                    AtomicOp::Or => "|=",
                    AtomicOp::Set => "set",
                };
                writeln!(f, "{} {op} {}", self.place(*memory, *offset), self.name(*value))
            }
            StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires } => {
                let (last, blocks) = (self.name(*last), self.name(*blocks));
                let place = self.place(Memory::Workspace(*counters), *at);
                let order = match (releases, acquires) {
                    (true, true) => "",
                    (true, false) => ", releases only",
                    (false, true) => ", acquires only",
                    (false, false) => ", relaxed",
                };
                writeln!(f, "{last}: bool = the first thread arrives last of {blocks} at {place}{order}")
            }
            StatementKind::BarRedOr { predicate, result } => {
                writeln!(f, "{}: bool = {} for any thread", self.name(*result), self.name(*predicate))
            }
            StatementKind::Elect(part) => {
                writeln!(f, "elect {{")?;
                self.region(f, *part, indent + 1)?;
                writeln!(f, "{pad}}}")
            }
            StatementKind::MbarrierExpectTx { barrier, slot, bytes } => {
                writeln!(f, "{} expects {bytes} bytes", self.barrier(*barrier, *slot))
            }
            StatementKind::BulkCopy(transfer) => {
                let signature = &self.kernel.signature;
                let part = match &transfer.part {
                    TensorPart::Tile { map, start } => {
                        let map = signature.maps.get(usize::from(*map)).map_or("?", |m| m.name.as_str());
                        format!("map {map} at {}", self.list(start))
                    }
                    TensorPart::Run { parameter, offset, bytes } => {
                        format!("{bytes} bytes of {}", self.place(Memory::Parameter(*parameter), *offset))
                    }
                };
                let buffer = self.kernel.buffers.get(transfer.buffer.index()).map_or("?", |b| b.name.as_str());
                let slots = self.kernel.buffers.get(transfer.buffer.index()).map_or(1, |b| b.slots);
                let slot = if slots > 1 { format!(" slot {}", self.name(transfer.slot)) } else { String::new() };
                let place = format!("{buffer}{slot}[{}]", self.name(transfer.offset));
                let hint = match transfer.evict {
                    Some(Evict::First) => ", evict first",
                    Some(Evict::Last) => ", evict last",
                    None => "",
                };
                let to = transfer.multicast.map_or_else(String::new, |mask| format!(" of blocks {}", self.name(mask)));
                match transfer.barrier {
                    Some(barrier) => {
                        let barrier = self.barrier(barrier, transfer.slot);
                        writeln!(f, "copy {part} to {place}, {barrier}{to}{hint}")
                    }
                    None => writeln!(f, "copy {place} to {part}{hint}"),
                }
            }
            StatementKind::MbarrierWait { barrier, slot, parity } => {
                writeln!(f, "await {} phase {}", self.barrier(*barrier, *slot), self.name(*parity))
            }
            StatementKind::MbarrierArrive { barrier, slot, to } => {
                let barrier = self.barrier(*barrier, *slot);
                let to = match to {
                    Receivers::Own => String::new(),
                    Receivers::One(rank) => format!(" of block {} of the cluster", self.name(*rank)),
                    Receivers::All => " of all blocks of the cluster".to_owned(),
                };
                writeln!(f, "each warp arrives at {barrier}{to}")
            }
            StatementKind::CpAsyncMbarrierArrive { barrier, slot } => {
                writeln!(f, "each thread arrives at {} after its fetches", self.barrier(*barrier, *slot))
            }
            StatementKind::Roles(roles) => {
                for (n, Role { name, warps, registers, cluster_mbarrier, body }) in roles.iter().enumerate() {
                    let before = if n == 0 { "" } else { pad.as_str() };
                    let registers = registers.map_or_else(String::new, |n| format!(" with {n} registers"));
                    let cluster_mbarrier =
                        cluster_mbarrier.map_or_else(String::new, |b| format!(", meets at barrier {}", b.0));
                    writeln!(
                        f,
                        "{before}role {name}, warps {}..{}{registers}{cluster_mbarrier} {{",
                        warps.start, warps.end
                    )?;
                    self.region(f, *body, indent + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                Ok(())
            }
            StatementKind::FenceProxyAsync => writeln!(f, "publish"),
            StatementKind::BulkCommitGroup => writeln!(f, "commit"),
            StatementKind::BulkWaitGroupRead { pending } => writeln!(f, "await reads of all but {pending} commits"),
            StatementKind::Wgmma(product) => {
                let Wgmma { sums, columns, a, b, adds } = product;
                let last = sums.0 + product.variables() - 1;
                let adds = adds.map_or_else(String::new, |adds| format!(" + sums if {}", self.name(adds)));
                let a = match a {
                    Factor::Shared(matrix) => self.matrix(matrix),
                    Factor::Registers(variables) => variables_of(variables),
                };
                writeln!(f, "v{}..v{last} = {a} x {}{adds}, {columns} columns", sums.0, self.matrix(b))
            }
            StatementKind::MmaSync(MmaSync { sums, a, b }) => {
                let last = sums.0 + MmaSync::SUMS - 1;
                writeln!(f, "v{}..v{last} += {} x {}", sums.0, variables_of(a), variables_of(b))
            }
            StatementKind::WgmmaFence => writeln!(f, "fence of products"),
            StatementKind::WgmmaCommitGroup => writeln!(f, "commit products"),
            StatementKind::WgmmaWaitGroup { pending } => writeln!(f, "await all but {pending} commits of products"),
        }
    }

    fn barrier(&self, barrier: MbarrierId, slot: ValueId) -> String {
        match self.kernel.barriers.get(barrier.index()) {
            Some(Mbarrier { slots: 1, .. }) => format!("barrier{}", barrier.0),
            _ => format!("barrier{} slot {}", barrier.0, self.name(slot)),
        }
    }

    fn matrix(&self, matrix: &Matrix) -> String {
        let Matrix { buffer, slot, offset, across, leading, stride, swizzle, told: _ } = *matrix;
        let place = self.place(Memory::Buffer(buffer), offset);
        let way = if across { "across" } else { "along k" };
        let slot = self.name(slot);
        format!("{place} of slot {slot} {way} ({leading}, {stride}, swizzle {})", swizzle.span())
    }

    fn ty(&self, value: ValueId) -> Type {
        self.kernel.value(value).ty
    }

    fn matrices(&self, Matrices { buffer, offset, count, transposed, .. }: Matrices) -> String {
        let way = if transposed { ", transposed" } else { "" };
        format!("{count} matrices of rows at {}{way}", self.place(Memory::Buffer(buffer), offset))
    }

    fn place(&self, memory: Memory, offset: ValueId) -> String {
        let name = match memory {
            Memory::Parameter(p) => self.kernel.signature.parameters.get(usize::from(p)).map(|p| p.name.as_str()),
            Memory::Buffer(b) => self.kernel.buffers.get(b.index()).map(|b| b.name.as_str()),
            Memory::Workspace(w) => self.kernel.workspaces.get(usize::from(w)).map(|w| w.name.as_str()),
        };
        let name = name.unwrap_or("?");
        format!("{name}[{}]", self.name(offset))
    }

    fn list(&self, values: &[ValueId]) -> String {
        if let [value] = values {
            return self.name(*value);
        }
        let mut text = String::from("(");
        for (n, value) in values.iter().enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            let _ = write!(text, "{separator}{}", self.name(*value));
        }
        text + ")"
    }

    fn name(&self, value: ValueId) -> String {
        let Value { op, ty, .. } = *self.kernel.value(value);
        match (op, self.names[value.index()]) {
            (Op::Literal(bits), _) => literal(ty, bits),
            (_, u32::MAX) => format!("%unbound{}", value.0),
            (_, number) => format!("%{number}"),
        }
    }

    fn op(&self, op: Op) -> String {
        let name = |value| self.name(value);
        let call = |function: &str, operands: &[ValueId]| {
            let operands: Vec<_> = operands.iter().map(|v| self.name(*v)).collect();
            format!("{function}({})", operands.join(", "))
        };
        let infix = |a, operator: &str, b| format!("{} {operator} {}", self.name(a), self.name(b));
        match op {
            Op::Literal(_) | Op::LoopIndex | Op::Loaded | Op::Shuffled | Op::Arrived | Op::Agreed => "?".to_owned(),
            Op::BlockIndex => "block".to_owned(),
            Op::BlockCount => "blocks".to_owned(),
            Op::ThreadIndex => "thread".to_owned(),
            Op::ClusterRank => "rank".to_owned(),
            Op::Dim(dim) => self.kernel.signature.dims.get(usize::from(dim)).map_or("?".to_owned(), |d| d.name.clone()),
            Op::Scalar(n) => {
                self.kernel.signature.parameters.get(usize::from(n)).map_or("?".to_owned(), |p| p.name.clone())
            }
            Op::Get(variable) => format!("v{}", variable.0),
            Op::Index(op, a, b) => match op {
                IndexOp::Add => infix(a, "+", b),
                IndexOp::Sub => infix(a, "-", b),
                IndexOp::Mul => infix(a, "*", b),
                IndexOp::Div => infix(a, "/", b),
                IndexOp::Mod => infix(a, "%", b),
                IndexOp::And => infix(a, "&", b),
                IndexOp::Xor => infix(a, "^", b),
                IndexOp::Min => call("min", &[a, b]),
                IndexOp::Max => call("max", &[a, b]),
            },
            Op::CompareIndex(op, a, b) | Op::Compare(op, a, b) => infix(a, comparison(op), b),
            Op::InRange(a, b) => format!("0 <= {} < {}", name(a), name(b)),
            Op::ConvertIndex(a) | Op::Cast(a) | Op::FromIndex(a) | Op::ToIndex(a) => {
                format!("{} from {}", name(a), self.ty(a))
            }
            Op::OfWarp(a) => format!("{} of the warp", name(a)),
            Op::Bits(a) => format!("bits {} from {}", name(a), self.ty(a)),
            Op::Select(condition, a, b) => format!("{} ? {} : {}", name(condition), name(a), name(b)),
            Op::Unary(op, a) => match op {
                UnaryOp::Neg => format!("-{}", name(a)),
                UnaryOp::Not => format!("!{}", name(a)),
                _ => call(function(op), &[a]),
            },
            Op::Binary(op, a, b) => match op {
                Binary::Add => infix(a, "+", b),
                Binary::Sub => infix(a, "-", b),
                Binary::Mul => infix(a, "*", b),
                Binary::Div => infix(a, "/", b),
                Binary::Rem => infix(a, "%", b),
                Binary::And => infix(a, "&", b),
                Binary::Or => infix(a, "|", b),
                Binary::Xor => infix(a, "^", b),
                Binary::Shl => infix(a, "<<", b),
                Binary::Shr => infix(a, ">>", b),
                Binary::Max => call("max", &[a, b]),
                Binary::Min => call("min", &[a, b]),
                Binary::MaxNum => call("max_num", &[a, b]),
                Binary::MinNum => call("min_num", &[a, b]),
            },
            Op::MulHigh(a, b) => call("mul_high", &[a, b]),
            Op::Shift(Shift::Left, a, b) => infix(a, "<<", b),
            Op::Shift(Shift::Right, a, b) => infix(a, ">>", b),
            Op::Fma(a, b, c) => call("fma", &[a, b, c]),
        }
    }
}

const fn comparison(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    }
}

const fn function(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "neg",
        UnaryOp::Not => "not",
        UnaryOp::Abs => "abs",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Trunc => "trunc",
        UnaryOp::RoundEven => "round_even",
        UnaryOp::Sqrt => "sqrt",
        UnaryOp::Recip => "recip",
        UnaryOp::Exp2Approx => "approx::exp2",
        UnaryOp::Log2Approx => "approx::log2",
        UnaryOp::SinApprox => "approx::sin",
        UnaryOp::CosApprox => "approx::cos",
        UnaryOp::TanhApprox => "approx::tanh",
        UnaryOp::SqrtApprox => "approx::sqrt",
        UnaryOp::RsqrtApprox => "approx::rsqrt",
        UnaryOp::RcpApprox => "approx::rcp",
    }
}

fn literal(ty: Type, bits: u64) -> String {
    use ElementType::{Bool, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};
    match ty {
        Type::I32 | Type::I64 => (bits as i64).to_string(),
        Type::Element(F64) => format!("{:?}f64", f64::from_bits(bits)),
        Type::Element(F32) => format!("{:?}f32", f32::from_bits(bits as u32)),
        Type::Element(Tf32) => format!("{:?}tf32", f32::from_bits(bits as u32)),
        Type::Element(Bool) => (bits != 0).to_string(),
        Type::Element(I64) => format!("{}i64", bits as i64),
        Type::Element(I32) => format!("{}i32", bits as i32),
        Type::Element(I16) => format!("{}i16", bits as i16),
        Type::Element(I8) => format!("{}i8", bits as i8),
        Type::Element(element @ (U64 | U32 | U16 | U8)) => format!("{bits}{element}"),
        Type::Element(element) => format!("{bits:#x}{element}"),
    }
}

/// A list of variables.
fn variables_of(list: &[VariableId]) -> String {
    let names: Vec<String> = list.iter().map(|v| format!("v{}", v.0)).collect();
    format!("[{}]", names.join(", "))
}
