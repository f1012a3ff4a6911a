//! Sums with more axes than the extreme that they follow, as products have: they follow it block by block of terms.
//!
//! **Property.** As in [`super`]. **Formula.** With b a block of B terms, and p what stands between extreme and sums:
//!
//! > m_b = max_{j ∈ b} u_j,   p_j = p(u_j, m_{⌊j/B⌋}),   l_b = Σ_{j ∈ b} t(p_j),   a_b = Σ_{j ∈ b} t(p_j)·y_j
//!
//! A fold over blocks takes these in: m' = max(m, m_b), l' = l·c(m, m') + l_b·c(m_b, m'), with whatever m_b
//! (docs/theory.md, Online reductions). Lowering takes the extreme of all terms so far for it: then c(m_b, m') = 1, and
//! a product goes on in the registers of the fold. Each of the equations is a stage in the loop over blocks: those of
//! extremes and of sums with the same elements have the schedule of the extreme, the others their own. The fold has the
//! elements of the product, and its schedule.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `copies` | values over other axes, with the extreme of a block |
//! | `found` | what the written equations say |
//! | `mask` | scores where the range of an element ends |
//! | `readers` | what others read after the pass |
//! | `schedules`, `order` | schedules of the new equations; their order |

mod copies;
mod found;
mod mask;
mod order;
mod readers;
mod schedules;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    Algorithm, Axis, AxisId, Component, Equation, Index, IndexId, Order, Reduction, Run, Source, Value, ValueId,
};
use tilewright_kernel::online::{Chain, push};

use super::build::{Build, Fold, Followed};
use super::{components, state_name};
use crate::diag::codes::OnlineProblem;
use crate::extent::{Expr, Facts};
use crate::program::{Blocks, Online, Program};
use crate::source::Span;
use crate::source::ast::{self, OpKind};
use found::{axes_of, fixed, reached, reads, reduction, scores_of};
use mask::Mask;
use schedules::{OfBlocks, literal};

type Found<T> = Result<T, (OnlineProblem, Span)>;

/// What the axes of an equation are in a copy of its values.
type Env = Vec<(AxisId, IndexId)>;

/// An extreme, the sums that follow it, and how they are cut into blocks.
pub(super) struct Cut<'a> {
    program: &'a mut Program,
    facts: &'a Facts,
    /// The equation of the extreme.
    extreme: u16,
    chains: &'a [(u16, Chain)],
    span: Span,
    /// The schedule of the extreme, and that of the product: positions.
    schedules: [usize; 2],
    /// How the terms are cut.
    of: OfBlocks,
    /// The range of the terms, and how many are in a block. If it ends earlier for some elements, that of all terms.
    range: [IndexId; 2],
    size: IndexId,
    /// The number of blocks, if the last one may lack terms. Then the range is that of blocks which have all.
    filled: Option<Filled>,
    mask: Option<Mask>,
    /// Whether a term of a product is copied.
    in_product: bool,
    /// Whether what is copied is an end of ranges.
    in_end: bool,
    /// A value of an index that is read from memory, which is none that can be copied.
    nested: Option<ValueId>,
    /// The equation of the extreme of a block.
    of_block: u16,
    /// What stands between extreme and sums: equations, and those that read the extreme of a block.
    between: Vec<(u16, u16)>,
}

/// A range of terms that blocks do not divide: it is continued to the end of the last block, by terms that add nothing.
struct Filled {
    /// The number of blocks.
    count: IndexId,
    /// Where the range ends without these terms; none if that depends on the element. Then whatever is beside a range
    /// may be multiplied by 0 (`reference()` admits what comes of it).
    end: Option<Expr>,
}

/// The sums of a block.
struct Parts {
    /// The equation of the product as it was written, and its number among the sums.
    product: u16,
    number: usize,
    /// The equations of a block, in the order of the sums.
    of_blocks: Vec<u16>,
}

fn refused<T>(why: &'static str, span: Span) -> Found<T> {
    Err((OnlineProblem::Blocks { why }, span))
}

/// Rewrites the equations and schedules of an extreme and of the sums that follow it over the loop `axis`.
pub(super) fn rewritten(
    program: &mut Program,
    (extreme, at): (u16, usize),
    (axis, span): (&ast::Name, Span),
    chains: &[(u16, Chain)],
    facts: &Facts,
) -> Found<Online> {
    let (terms, _) = reduction(&program.algorithm, extreme);
    let Axis { name, lower, upper } = program.algorithm.axes[terms as usize].clone();
    let Some(cut) = OfBlocks::find(&program.schedules[at].ast.ops, axis, &name) else {
        return refused("is not of the outer one of a split of all terms by those of a block", axis.span);
    };
    let (of, factor) = (&cut.of, &cut.size);
    let Some(number) = literal(factor) else { return refused("has blocks whose size is no literal", factor.span) };
    let Some(all) = number.checked_mul(cut.multiple) else { return refused("has too large blocks", factor.span) };
    let (low, high) = fixed(program, terms, facts);
    let (mut low, mut high, mut range, mut scores) = (low, high, [lower, upper], None);
    // Where the range of an element starts, if it does not start alike for all of them.
    let start = low.is_unknown().then_some(lower);
    if low.is_unknown() || high.is_unknown() {
        let Some((equation, end)) = scores_of(program, extreme) else {
            return refused(
                "has a range that depends on the element, and terms that are no elements of an equation",
                of.span,
            );
        };
        let axis = &program.algorithm.axes[end as usize];
        range = [if start.is_some() { axis.lower } else { lower }, axis.upper];
        let whole = fixed(program, end, facts);
        if start.is_none() && whole.0 != low {
            return refused("has a range that depends on the element, and does not start where its scores do", of.span);
        }
        // 0 times a score of no term is no number.
        if chains.iter().any(|(_, chain)| reads(&program.algorithm, chain.weight, equation)) {
            return refused("has a range that depends on the element, and sums that multiply by its scores", of.span);
        }
        (low, high, scores) = (whole.0, whole.1, Some(equation));
    }
    let is_whole = facts.proves_multiple(&high.sub(&low), all.into());
    if !is_whole && scores.is_none() {
        let found = scores_of(program, extreme);
        let of_scores = |(_, end): &(u16, AxisId)| fixed(program, *end, facts);
        let Some((equation, _)) = found.filter(|found| of_scores(found) == (low.clone(), high.clone())) else {
            return refused(
                "has blocks of which the last may lack terms, and terms that are no elements of an equation with their \
                 range",
                factor.span,
            );
        };
        if chains.iter().any(|(_, chain)| reads(&program.algorithm, chain.weight, equation)) {
            return refused(
                "has blocks of which the last may lack terms, and sums that multiply by its scores",
                factor.span,
            );
        }
        scores = Some(equation);
    }
    let wide: Vec<u16> = chains.iter().filter(|(_, chain)| !chain.more.is_empty()).map(|chain| chain.0).collect();
    let [product] = wide[..] else { return refused("is followed by several sums with more axes", span) };
    let is_here = |at: &ast::AxisRef| at.stage.text == super::name(program, extreme) && at.axis.text == axis.text;
    let own = program.schedules.iter().position(|s| s.equation == product);
    let Some(own) = own.filter(|own| program.schedules[*own].ast.clauses.at.as_ref().is_some_and(is_here)) else {
        return refused("is followed by a sum with more axes, which must stand in it", span);
    };
    if !program.schedules[own].ast.ops.iter().any(|op| matches!(op.kind, OpKind::Mma { .. })) {
        return refused("is followed by a sum with more axes, which tensor cores must compute", span);
    }
    let mut cut = Cut {
        extreme,
        chains,
        span,
        schedules: [at, own],
        of: cut,
        range,
        size: 0,
        filled: None,
        mask: None,
        in_product: false,
        in_end: false,
        nested: None,
        of_block: 0,
        between: Vec::new(),
        program,
        facts,
    };
    cut.size = cut.index(Index::Literal(number));
    if !is_whole {
        let (first, end) = fixed(cut.program, terms, facts);
        let depends = first.is_unknown() || end.is_unknown();
        cut.fill((!depends).then_some(high));
    }
    if let Some(scores) = scores {
        cut.mask(scores, (start, upper))?;
    }
    let written = cut.program.algorithm.equations.len() as u16;
    let found = cut.equations(product)?;
    if let Some(value) = cut.nested {
        let span = cut.program.value_spans.get(value as usize).copied().unwrap_or(span);
        return refused("has indices read from memory by a reduction, or by the extreme itself", span);
    }
    cut.in_order(written, found)
}

impl Cut<'_> {
    fn algorithm(&mut self) -> &mut Algorithm {
        &mut self.program.algorithm
    }

    fn index(&mut self, index: Index) -> IndexId {
        let indices = self.algorithm().indices.to_mut();
        indices.push(index);
        (indices.len() - 1) as IndexId
    }

    fn axis(&mut self, name: &str, lower: IndexId, upper: IndexId) -> (AxisId, IndexId) {
        let axes = self.algorithm().axes.to_mut();
        axes.push(Axis { name: name.to_owned().into(), lower, upper });
        let axis = (axes.len() - 1) as AxisId;
        (axis, self.index(Index::Axis(axis)))
    }

    fn list(&mut self, axes: &[AxisId]) -> Run {
        let lists = self.algorithm().axis_lists.to_mut();
        let start = lists.len() as u32;
        lists.extend(axes);
        Run { start, len: axes.len() as u32 }
    }

    fn read(&mut self, (equation, component): (u16, u16), at: &[IndexId]) -> ValueId {
        let algorithm = self.algorithm();
        let ty = algorithm.types[components(algorithm, equation)[usize::from(component)].value as usize];
        let read = self.read_of(Source::Equation { equation, component }, at, None);
        push(self.algorithm(), read, ty)
    }

    fn read_of(&mut self, source: Source, at: &[IndexId], or: Option<ValueId>) -> Value {
        let lists = self.algorithm().index_lists.to_mut();
        let indices = Run { start: lists.len() as u32, len: at.len() as u32 };
        lists.extend(at);
        Value::Read { source, indices, or }
    }

    fn equation(&mut self, axes: &[AxisId], parts: Vec<(String, ValueId)>) -> u16 {
        let axes = self.list(axes);
        let algorithm = self.algorithm();
        let components = Run { start: algorithm.components.len() as u32, len: parts.len() as u32 };
        let parts = parts.into_iter().map(|(name, value)| Component { name: name.into(), value, parameter: None });
        algorithm.components.to_mut().extend(parts);
        algorithm.equations.to_mut().push(Equation { components, axes });
        (algorithm.equations.len() - 1) as u16
    }

    /// Continues the range to the end of the last block.
    fn fill(&mut self, end: Option<Expr>) {
        let ([lower, upper], size) = (self.range, self.size);
        let all = self.index(Index::Sub(upper, lower));
        let count = self.up(all);
        let terms = self.index(Index::Mul(count, size));
        self.range[1] = self.index(Index::Add(lower, terms));
        self.filled = Some(Filled { count, end });
    }

    /// How many blocks so many terms take, as many as splits of these divide.
    fn up(&mut self, terms: IndexId) -> IndexId {
        let multiple = self.index(Index::Literal(self.of.multiple));
        let (one, each) = (self.index(Index::Literal(1)), self.index(Index::Mul(self.size, multiple)));
        let rest = self.index(Index::Sub(each, one));
        let last = self.index(Index::Add(terms, rest));
        let count = self.index(Index::Div(last, each));
        self.index(Index::Mul(count, multiple))
    }

    /// Axes like those of an equation, and what the old ones are. The one along terms goes to the end of the last
    /// block.
    fn like(&mut self, equation: u16, along: Option<AxisId>) -> (Vec<AxisId>, Env) {
        let own = axes_of(&self.program.algorithm, equation).to_vec();
        let (mut axes, mut env) = (Vec::new(), Env::new());
        for axis in own {
            let Axis { name, lower, mut upper } = self.program.algorithm.axes[axis as usize].clone();
            if along == Some(axis) && self.filled.is_some() {
                upper = self.range[1];
            }
            let (lower, upper) = (self.copied(lower, &env), self.copied(upper, &env));
            let (new, index) = self.axis(&name, lower, upper);
            axes.push(new);
            env.push((axis, index));
        }
        (axes, env)
    }

    /// The end of the range of an element with these axes of the extreme.
    fn end(&mut self, of_extreme: &Env) -> IndexId {
        match self.mask.as_ref().map(|mask| mask.upper) {
            Some(upper) => self.copied_end(upper, of_extreme),
            None => self.range[1],
        }
    }

    /// The start of the range of an element with these axes of the extreme.
    fn start(&mut self, of_extreme: &Env) -> IndexId {
        match self.mask.as_ref().and_then(|mask| mask.lower) {
            Some(lower) => self.copied_end(lower, of_extreme),
            None => self.range[0],
        }
    }

    /// The first block of a range that starts here, of those that splits of blocks begin with.
    fn down(&mut self, start: IndexId) -> IndexId {
        let before = self.index(Index::Sub(start, self.range[0]));
        let multiple = self.index(Index::Literal(self.of.multiple));
        let each = self.index(Index::Mul(self.size, multiple));
        let first = self.index(Index::Div(before, each));
        self.index(Index::Mul(first, multiple))
    }

    /// The number of blocks as an axis; of an element with these axes of the extreme.
    fn blocks(&mut self, of_extreme: Option<&Env>) -> (AxisId, IndexId) {
        let ([lower, upper], size) = (self.range, self.size);
        let upper = of_extreme.map_or(upper, |env| self.end(env));
        let count = match (&self.filled, of_extreme) {
            (Some(filled), None) => filled.count,
            (_, of_extreme) => {
                let range = self.index(Index::Sub(upper, lower));
                match self.mask.is_some() && of_extreme.is_some() {
                    true => self.up(range),
                    false => self.index(Index::Div(range, size)),
                }
            }
        };
        let first = match of_extreme.filter(|_| self.mask.as_ref().is_some_and(|mask| mask.lower.is_some())) {
            Some(env) => {
                let start = self.start(env);
                self.down(start)
            }
            None => self.index(Index::Literal(0)),
        };
        let name = self.of.blocks.text.clone();
        self.axis(&name, first, count)
    }

    /// A reduction over the terms of a block, in a copy of the equation.
    fn of_block(&mut self, equation: u16, inner: &str, order: Order) -> Found<(Vec<AxisId>, ValueId)> {
        let (terms, body) = reduction(&self.program.algorithm, equation);
        let value = components(&self.program.algorithm, equation)[0].value;
        let ty = self.program.algorithm.types[value as usize];
        let op = match self.program.algorithm.values[value as usize] {
            Value::Reduce { op, .. } => op,
            _ => Reduction::Sum,
        };
        let (mut axes, mut env) = self.like(equation, None);
        let (block, at) = self.blocks(None);
        let ([lower, _], size) = (self.range, self.size);
        let before = self.index(Index::Mul(size, at));
        let first = self.index(Index::Add(lower, before));
        let end = self.index(Index::Add(first, size));
        let (term, index) = self.axis(inner, first, end);
        env.push((terms, index));
        self.in_product = matches!(order, Order::Dot { .. });
        let body = self.value(body, &env, (at, terms))?;
        self.in_product = false;
        let list = self.list(&[term]);
        axes.push(block);
        Ok((axes, push(self.algorithm(), Value::Reduce { op, order, axes: list, body }, ty)))
    }

    /// All equations: what lowering knows of them, and those that were added for their readers.
    fn equations(&mut self, product: u16) -> Found<Online> {
        let (extreme, chains) = (self.extreme, self.chains);
        let name = super::name(self.program, extreme);
        let first = components(&self.program.algorithm, extreme)[0].value;
        let (ty, Value::Reduce { op, .. }) =
            (self.program.algorithm.types[first as usize], self.program.algorithm.values[first as usize])
        else {
            return refused("is of no reduction", self.span);
        };
        let inner = self.of.inner.text.clone();
        let (axes, value) = self.of_block(extreme, &inner, Order::Free)?;
        self.of_block = self.equation(&axes, vec![(format!("{name}{}", super::OF_BLOCK), value)]);
        let mut of_blocks = Vec::new();
        for (later, _) in chains {
            let own = super::name(self.program, *later);
            let sum = components(&self.program.algorithm, *later)[0].value;
            let (mut order, mut inner, mut of_block) =
                (Order::Free, inner.clone(), format!("{own}{}", super::OF_BLOCK));
            if let Value::Reduce { order: Order::Dot { operands, promote, .. }, .. } =
                self.program.algorithm.values[sum as usize]
            {
                order = Order::Dot { operands, promote, online: false };
            }
            if *later == product {
                let (terms, _) = reduction(&self.program.algorithm, *later);
                (inner, of_block) = (self.program.algorithm.axes[terms as usize].name.to_string(), own);
            }
            let (axes, value) = self.of_block(*later, &inner, order)?;
            of_blocks.push(self.equation(&axes, vec![(of_block, value)]));
        }
        let parts = Parts { product, number: chains.iter().position(|c| c.0 == product).unwrap_or(0), of_blocks };
        let online = self.fold((op, ty), &name, &parts);
        self.results((online.equation, product), (op, ty));
        self.scheduled(online.equation, &parts.of_blocks, parts.number);
        Ok(online)
    }

    /// The fold over blocks, with the elements of the product.
    fn fold(&mut self, (op, ty): (Reduction, ElementType), name: &str, parts: &Parts) -> Online {
        let chains = self.chains;
        let (axes, env) = self.like(parts.product, None);
        let of_extreme = self.of_extreme(parts.product, &env);
        let (block, at_block) = self.blocks(Some(&of_extreme));
        let rows: Vec<IndexId> = of_extreme.iter().map(|e| e.1).collect();
        let taken = self.read((self.of_block, 0), &[&rows[..], &[at_block]].concat());
        let mut reads = Vec::new();
        for ((later, chain), of_block) in chains.iter().zip(&parts.of_blocks) {
            let own = axes_of(&self.program.algorithm, *later).to_vec();
            let row = |axis: &AxisId| {
                let is_it = |place: &IndexId| self.program.algorithm.indices[*place as usize] == Index::Axis(*axis);
                chain.places.iter().position(is_it).map(|n| rows[n])
            };
            let more = |axis: &AxisId| env.iter().find(|e| e.0 == *axis).map(|e| e.1);
            let mut places: Vec<IndexId> = own.iter().filter_map(|axis| row(axis).or_else(|| more(axis))).collect();
            places.push(at_block);
            reads.push(self.read((*of_block, 0), &places));
        }
        let list = self.list(&[block]);
        let mut b = Build::new(self.algorithm(), ty, op, None);
        let mut followers = Vec::new();
        for ((_, chain), read) in chains.iter().zip(&reads) {
            let mut follower = b.follower(chain);
            let of_safe = b.value(Value::Variable(b.taken));
            let to = Followed { states: Vec::new(), safe: of_safe };
            follower.term = b.corrected(&follower, *read, &[taken], &to);
            followers.push(follower);
        }
        let Fold { fold, safe } = b.fold((list, taken), &followers);
        let Build { before, now, taken: of_terms, .. } = b;
        let of_sums = chains.iter().map(|chain| state_name(&super::name(self.program, chain.0), name));
        let names: Vec<String> = std::iter::once(name.to_owned()).chain(of_sums).collect();
        let states = names.into_iter().zip(0..).map(|(name, component)| {
            (name, push(&mut self.program.algorithm, Value::Component { fold, component }, ty))
        });
        let states = states.collect();
        let equation = self.equation(&axes, states);
        let (all, _) = self.blocks(None);
        let blocks = Blocks {
            extreme: self.of_block,
            product: parts.of_blocks[parts.number],
            number: parts.number,
            taken,
            sums: reads,
            masked: self.mask.as_ref().map(|mask| mask.known),
            count: self.program.algorithm.axes[all as usize].upper,
        };
        Online { equation, fold, span: self.span, before, now, taken: of_terms, safe, followers, blocks: Some(blocks) }
    }
}
