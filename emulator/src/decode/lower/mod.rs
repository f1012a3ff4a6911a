//! Lowering of a parsed module: memory layout, then every instruction by family. An instruction without a meaning here
//! is refused with its line and the manual's section; the matches on families have no wildcard, so a new table entry
//! must be decided on. The statements of one function are in `body`, operands in `values`.

mod arith;
mod body;
mod bulk;
mod call;
mod compare;
mod control;
mod convert;
mod copy;
mod logic;
mod matrix;
mod memory;
mod values;
mod wgmma;

use tilewright_ptx::isa::Op as Family;
use tilewright_ptx::{
    Directive, FuncId, Function, FunctionKind, Inst as Source, LabelId, Module, RegId, StateSpace, Symbol, VarId,
};
use tilewright_sorted::{SortedMap, SortedSet};

use super::layout::{Layout, MOST_LOCAL, MOST_PARAMS, MOST_SHARED, is_dynamic, unsupported};
use super::module::{Global, Reachable, Variables, is_launch_sized};
use super::op::PredRef;
use super::slots::Slots;
use super::{Kernel, Named, Origin, SourcePlace};
use crate::counters::Class;
use crate::error::Error;

/// Bytes of shared memory that the system keeps on sm_80 and later (CUDA programming guide, compute capabilities).
const RESERVED_SHARED: u32 = 1024;

/// A decoded module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoded {
    pub kernels: Vec<Kernel>,
    /// Kernels that cannot be decoded, with the reason.
    pub refused: Vec<(String, Error)>,
    /// Initial bytes of constant memory.
    pub constants: Vec<u8>,
    pub constant_variables: Vec<Named>,
    pub globals: Vec<Global>,
}

/// What is wrong with one instruction; the line is added by the caller.
pub(super) struct Refusal(String);

pub(super) type Lowered<T> = Result<T, Refusal>;

pub(super) fn refuse<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Refusal(why.into()))
}

/// Decodes all kernels of a module. One that cannot be decoded, or that reaches a function with a mistake, does not
/// stop the others.
pub(crate) fn decode(module: &Module, mistakes: &SortedMap<FuncId, Error>) -> Result<Decoded, Error> {
    if module.address_size != 64 {
        return Err(unsupported(
            0,
            format!(".address_size {}", module.address_size),
            "",
            "only 64-bit addresses are supported",
        ));
    }
    let variables = Variables::new(module)?;
    let kept = super::guess::kept(module);
    let mut decoded = Decoded { constants: variables.constants.clone(), ..Decoded::default() };
    for (index, function) in module.functions.iter().enumerate() {
        let own = mistakes.get(&FuncId(index as u32));
        if function.kind != FunctionKind::Entry || (function.body.is_empty() && own.is_none()) {
            continue;
        }
        let lowering = match own {
            Some(mistake) => Err(mistake.clone()),
            None => Lowering::new(module, function, &variables, &kept, false),
        };
        let sound = |lowering: Lowering<'_>| match lowering.reachable.order.iter().find_map(|id| mistakes.get(id)) {
            Some(mistake) => Err(mistake.clone()),
            None => lowering.run(),
        };
        match lowering.and_then(sound) {
            Ok(kernel) => decoded.kernels.push(kernel),
            Err(error) => decoded.refused.push((function.name.clone(), error)),
        }
    }
    decoded.constant_variables = variables.constant_names;
    decoded.globals = variables.globals;
    let first = decoded.refused.first().map(|(_, error)| error).or(mistakes.values().next());
    match first {
        Some(error) if decoded.kernels.is_empty() => Err(error.clone()),
        _ => Ok(decoded),
    }
}

/// Decodes a kernel once more, so that it follows what it loads from shared memory: see [`Kernel::follows`].
pub(crate) fn decode_following(module: &Module, name: &str) -> Result<Kernel, Error> {
    let entry = |function: &&Function| function.kind == FunctionKind::Entry && function.name == name;
    let Some(function) = module.functions.iter().find(entry) else {
        return Err(Error::NoEntry { entry: name.to_owned(), known: Vec::new() });
    };
    let (variables, kept) = (Variables::new(module)?, super::guess::kept(module));
    Lowering::new(module, function, &variables, &kept, true)?.run()
}

/// One kernel while it is lowered, with the device functions that it reaches: the names below are those of one function
/// at a time.
pub(super) struct Lowering<'a> {
    module: &'a Module,
    function: &'a Function,
    pub(super) kernel: Kernel,
    pub(super) slots: Slots<'a>,
    /// Offsets of variables in their state spaces.
    places: SortedMap<Symbol, u64>,
    /// What the kernel reaches.
    reachable: Reachable,
    /// Whether threads have memory of their own that a generic address may be in.
    local_memory: bool,
    /// Number in the kernel's list of every device function.
    numbers: SortedMap<FuncId, u32>,
    /// The frame base of a device function; none in the kernel.
    frame: Option<u32>,
    shared: Layout,
    /// Places of the shared variables of bodies, by function and number.
    shared_places: SortedMap<(String, usize), u64>,
    local: Layout,
    labels: SortedMap<LabelId, u32>,
    tables: SortedMap<LabelId, Vec<LabelId>>,
    /// Branches whose targets are not known yet.
    fixes: Vec<(usize, LabelId)>,
    table_fixes: Vec<(usize, LabelId)>,
    guard: Option<PredRef>,
    tracked: SortedMap<RegId, u32>,
    /// Registers of products by warpgroups, by number in the kernel's list.
    matrix_registers: SortedMap<RegId, u32>,
    /// Whether the present instruction is a load that guesses what a compare-and-swap will find.
    pub(super) guess: bool,
    /// See [`super::guess::kept`].
    kept: &'a SortedSet<(usize, RegId)>,
    origin: Origin,
    mnemonics: SortedMap<String, u32>,
    sources: SortedMap<SourcePlace, u32>,
    /// Of the positions in the function: the name of the function that was inlined, and where.
    inlined: SortedMap<Position, (String, Option<Position>)>,
}

/// File, line, column.
type Position = (u32, u32, u32);

impl<'a> Lowering<'a> {
    fn new(
        module: &'a Module,
        function: &'a Function,
        variables: &Variables,
        kept: &'a SortedSet<(usize, RegId)>,
        follows: bool,
    ) -> Result<Self, Error> {
        let mut kernel = Kernel { name: function.name.clone(), follows, ..Kernel::default() };
        let mut places = variables.places.clone();
        let reachable = Reachable::new(module, function);
        let mut params = Layout::new(MOST_PARAMS);
        for (index, param) in function.params.iter().enumerate() {
            places.insert(Symbol::Param(VarId(index as u32)), params.add(param)?);
        }
        kernel.param_bytes = params.next as u32;
        kernel.param_variables = params.named;
        kernel.constant_variables = variables.constant_names.clone();
        // Shared variables outside functions take room where they are used.
        let mut shared = Layout::spaced(MOST_SHARED);
        if reachable.reserved_shared {
            shared.reserve("reserved for the system", u64::from(RESERVED_SHARED));
        }
        for id in &reachable.variables {
            let Some(variable) = module.variables.get(id.index()) else { continue };
            if variable.space.base() == StateSpace::Shared && !is_dynamic(variable) {
                places.insert(Symbol::Global(*id), shared.add(variable)?);
            }
        }
        for directive in &function.directives {
            let shape = |list: &[u32]| [0, 1, 2].map(|i| list.get(i).copied().unwrap_or(1));
            match directive {
                Directive::Reqntid(list) => kernel.required_block = Some(shape(list)),
                Directive::Maxntid(list) => {
                    kernel.most_threads = Some(shape(list).iter().map(|n| u64::from(*n)).product())
                }
                Directive::Reqnctapercluster(list) => kernel.required_cluster = Some(shape(list)),
                Directive::Explicitcluster => kernel.explicit_cluster = true,
                Directive::Maxclusterrank(most) => kernel.most_cluster = Some(*most),
                Directive::Maxnreg(count) => kernel.maxnreg = Some(*count),
                Directive::Minnctapersm(count) => kernel.minnctapersm = Some(*count),
                _ => {}
            }
        }
        Ok(Lowering {
            module,
            function,
            kernel,
            slots: Slots::new(function),
            places,
            local_memory: has_local_memory(module, function, &reachable),
            reachable,
            numbers: SortedMap::new(),
            frame: None,
            shared,
            shared_places: SortedMap::new(),
            local: Layout::new(MOST_LOCAL),
            labels: SortedMap::new(),
            tables: SortedMap::new(),
            fixes: Vec::new(),
            table_fixes: Vec::new(),
            guard: None,
            tracked: SortedMap::new(),
            matrix_registers: SortedMap::new(),
            guess: false,
            kept,
            origin: Origin { line: function.line, mnemonic: 0, source: 0, class: Class::Control, work: None },
            mnemonics: SortedMap::new(),
            sources: SortedMap::new(),
            inlined: SortedMap::new(),
        })
    }

    /// Device functions first, callees before callers: the instruction with the lowest number runs first, so that lanes
    /// that enter a function come back before the others go on.
    fn run(mut self) -> Result<Kernel, Error> {
        let kernel = self.function;
        self.shared_variables()?;
        self.frames()?;
        for id in self.reachable.order.clone() {
            self.device_function(id)?;
        }
        self.enter(kernel);
        self.places_of_body(true)?;
        self.kernel.start = self.kernel.code.len() as u32;
        self.body()?;
        let mut kernel = self.kernel;
        kernel.reserved_shared = if self.reachable.reserved_shared { RESERVED_SHARED } else { 0 };
        kernel.static_shared = self.shared.dense() as u32;
        kernel.shared_spread = self.shared.spread as u32;
        kernel.shared_gaps = self.shared.gaps;
        kernel.shared_spreads = self.shared.spreads;
        kernel.shared_variables = self.shared.named;
        kernel.local_bytes = self.local.next as u32;
        kernel.local_variables = self.local.named;
        self.slots.finish(&mut kernel);
        super::uniform::mark(&mut kernel);
        super::pack::pack(&mut kernel);
        super::pack::finish(&mut kernel);
        Ok(kernel)
    }

    /// Places the shared variables of all function bodies, and after them the block whose size the launch gives.
    fn shared_variables(&mut self) -> Result<(), Error> {
        let module = self.module;
        let reached = self.reachable.order.iter().filter_map(|id| module.functions.get(id.index()));
        let bodies: Vec<&Function> = reached.chain([self.function]).collect();
        for function in bodies {
            for (index, variable) in function.variables.iter().enumerate() {
                if variable.space.base() == StateSpace::Shared && !is_dynamic(variable) {
                    let place = self.shared.add(variable)?;
                    self.shared_places.insert((function.name.clone(), index), place);
                }
            }
        }
        // One block has every name that is declared without a size.
        let mut blocks = Vec::new();
        for id in &self.reachable.variables {
            if let Some(variable) = module.variables.get(id.index()).filter(|v| is_launch_sized(v)) {
                blocks.push((*id, variable));
            }
        }
        if !blocks.is_empty() {
            let variables: Vec<_> = blocks.iter().map(|(_, variable)| *variable).collect();
            let place = self.shared.add_block(&variables);
            self.places.extend(blocks.into_iter().map(|(id, _)| (Symbol::Global(id), place)));
        }
        Ok(())
    }

    /// Forgets the names of the last function.
    fn enter(&mut self, function: &'a Function) {
        self.function = function;
        self.slots.enter(function);
        self.places.retain(|symbol, _| !matches!(symbol, Symbol::Local(_)));
        self.labels.clear();
        self.tables.clear();
        self.tracked.clear();
        self.inlined.clear();
        self.frame = None;
        self.origin = Origin { line: function.line, mnemonic: 0, source: 0, class: Class::Control, work: None };
    }

    /// Places the variables of a kernel's body, or the shared ones of a device function's.
    fn places_of_body(&mut self, kernel: bool) -> Result<(), Error> {
        let function = self.function;
        for (index, variable) in function.variables.iter().enumerate() {
            let symbol = Symbol::Local(VarId(index as u32));
            match variable.space.base() {
                StateSpace::Shared => {
                    if let Some(place) = self.shared_places.get(&(function.name.clone(), index)) {
                        self.places.insert(symbol, *place);
                    }
                }
                StateSpace::Local | StateSpace::Param if kernel => {
                    let place = self.local.add_aligned(variable, 4)?;
                    self.places.insert(symbol, place);
                }
                StateSpace::Local | StateSpace::Param => {}
                _ => {
                    let what = format!("variable `{}` in .{}", variable.name, variable.space.text());
                    return Err(unsupported(
                        variable.line,
                        what,
                        "",
                        "only shared and local variables and parameters of calls may be declared in a function",
                    ));
                }
            }
        }
        Ok(())
    }

    fn lower(&mut self, inst: &Source) -> Lowered<()> {
        match inst.op {
            Family::Arith(op) => self.arith(op, inst),
            Family::Logic(op) => self.logic(op, inst),
            Family::Compare(op) => self.compare(op, inst),
            Family::Convert(op) => self.convert(op, inst),
            Family::Math(op) => self.math(op, inst),
            Family::Memory(op) => self.memory(op, inst),
            Family::Atomic(op) => self.atomic(op, inst),
            Family::Synchronization(op) => self.synchronization(op, inst),
            Family::Warp(op) => self.warp(op, inst),
            Family::Control(op) => self.control(op, inst),
            Family::AsyncCopy(op) => self.async_copy(op, inst),
            Family::Matrix(op) => self.matrix(op, inst),
            Family::Video(op) => self.video(op, inst),
            Family::Stack(op) => self.stack(op, inst),
        }
    }
}

/// Whether the kernel or a function that it reaches has variables in local memory, or parameters there whose address
/// may be taken.
fn has_local_memory(module: &Module, kernel: &Function, reachable: &Reachable) -> bool {
    let functions = reachable.order.iter().filter_map(|id| module.functions.get(id.index()));
    functions.chain([kernel]).any(|function| {
        let mut allocates = false;
        function.for_each_inst(&mut |inst| allocates |= matches!(inst.op, Family::Stack(_)));
        allocates || function.variables.iter().any(|variable| variable.space.base() == StateSpace::Local)
    })
}
