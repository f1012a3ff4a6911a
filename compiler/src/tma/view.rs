//! The TMA domain of a staged copy: a view of the tensor's dimensions, and on each of its axes a box and a tile.
//!
//! A split of a view axis must divide, and a merge needs neighbours that are contiguous to each other (seed
//! "Introduction to TMA Support", step 1): then an axis of the view has one size and one stride, which is all that a
//! tensor map can say. Boxes and tiles need not divide anything (steps 2 and 3).
//!
//! Ops before the boxes act on the tensor; a box cuts the *region* that an instance holds, so that box 0 starts
//! where the region starts. Ops after them act on the axes of the tile, and say how it lies in shared memory (step 4;
//! see `allocation`).

use super::allocation::{TileOp, TileOpKind};
use crate::extent::{Expr, Facts};
use crate::plan::staged::{Boxed, TileAxis};
use crate::source::{Span, ast};

/// Most ops on axes of a tile.
const MOST_TILE_OPS: usize = 64;

/// An axis of the view, outermost first in its list.
#[derive(Clone, Debug)]
pub struct ViewAxis {
    /// Its name.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Elements of the tensor along it.
    pub size: Expr,
    /// Distance of neighbours, in elements.
    pub stride: Expr,
    /// Index expressions that the ops of the view carry along: what each read asks for, in terms of the reader's loops.
    pub indices: Vec<Expr>,
    /// Dimensions of the tensor that it is made of.
    pub dims: Vec<usize>,
    /// Those in which an index past the end would be another element of the axis: the inner ones of a merge.
    pub aliased: Vec<usize>,
    /// Whether it has padding around what lies in memory.
    pub padded: bool,
    /// Its box, if it was boxed.
    pub boxed: Option<Boxed>,
}

/// Why an op of a view is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no axis of that name to which the op applies.
    NoAxis {
        /// What was named.
        name: String,
        /// Where.
        span: Span,
        /// The axes that there are.
        known: Vec<String>,
        /// The op that replaced the axis, if there was one.
        consumed: Option<Span>,
    },
    /// The name is taken.
    Taken {
        /// It.
        name: String,
        /// Where.
        span: Span,
        /// Where it was introduced first.
        first: Span,
    },
    /// A factor that is not a literal of at least 1.
    Factor {
        /// Its value, if it is a literal.
        value: Option<i128>,
        /// Where.
        span: Span,
    },
    /// A split of the view leaves a remainder: `size % factor == 0` is not known.
    Indivisible {
        /// Size of the axis.
        size: Expr,
        /// The factor.
        factor: i128,
        /// The op.
        span: Span,
    },
    /// Axes are merged that are not neighbours, or whose elements do not follow each other.
    Discontiguous {
        /// The outer one.
        outer: String,
        /// The inner one.
        inner: String,
        /// Their strides, and the elements along the inner one.
        measures: Box<[Expr; 3]>,
        /// The op.
        span: Span,
    },
    /// A composite box whose box axes have sizes known at launch only.
    SymbolicBox {
        /// Size of the axis.
        size: Expr,
        /// The op.
        span: Span,
    },
    /// A second box or tile on one axis.
    Twice {
        /// The axis.
        name: String,
        /// The second op.
        span: Span,
    },
    /// Part of the language that is not built yet.
    NotYet {
        /// What.
        construct: &'static str,
        /// Where.
        span: Span,
        /// What there is.
        instead: Option<&'static str>,
    },
}

impl Boxed {
    /// Slots of a tile: ⌈box / element stride⌉.
    pub fn slots(&self) -> i128 {
        (self.box_size + self.element_stride - 1).div_euclid(self.element_stride)
    }
}

/// The view under construction.
pub struct View<'a> {
    /// Its axes, outermost first.
    pub axes: Vec<ViewAxis>,
    /// The ops on axes of the tile, in order.
    pub tile_ops: Vec<TileOp>,
    facts: &'a Facts,
    /// Dimensions by name, for factors.
    literal: &'a dyn Fn(&ast::Expr) -> Option<i128>,
}

impl<'a> View<'a> {
    /// The tensor itself. `literal` evaluates a factor.
    pub fn new(axes: Vec<ViewAxis>, facts: &'a Facts, literal: &'a dyn Fn(&ast::Expr) -> Option<i128>) -> Self {
        Self { axes, tile_ops: Vec::new(), facts, literal }
    }

    /// Applies an op that makes the view, its boxes or its tiles.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn apply(&mut self, op: &ast::Op) -> Result<(), Refusal> {
        use ast::OpKind;
        match &op.kind {
            OpKind::Split { axis, side, factor, outer, inner } if self.is_in_view(axis) => {
                self.split(axis, *side, factor, [outer, inner], op.span)
            }
            OpKind::Split { axis, side, factor, outer, inner } => {
                let factor = self.factor(factor)?;
                self.tile_op(TileOpKind::Split(*side, factor), &[axis], &[outer, inner], op.span)
            }
            OpKind::Merge { axes, into } if axes.iter().all(|a| self.is_in_view(a)) => {
                self.merge_names(axes, into, op.span)
            }
            OpKind::Merge { axes, into } => {
                self.tile_op(TileOpKind::Merge, &axes.iter().collect::<Vec<_>>(), &[into], op.span)
            }
            OpKind::Swizzle { x, y, x_into, y_into, .. } => {
                self.tile_op(TileOpKind::Swizzle, &[x, y], &[x_into, y_into], op.span)
            }
            OpKind::Box { axis, factor, coordinate, inner } => {
                let at = self.unboxed(axis)?;
                let box_size = self.factor(factor)?;
                self.fresh(&[coordinate, inner])?;
                self.axes[at].boxed = Some(Boxed {
                    box_size,
                    element_stride: 1,
                    coordinates: vec![coordinate.text.clone()],
                    tile: vec![TileAxis { name: inner.text.clone(), extent: box_size }],
                    phase: None,
                    span: op.span,
                    striding: None,
                });
                Ok(())
            }
            OpKind::BoxRun { coordinates, boxed } => self.composite(coordinates, boxed, op.span),
            OpKind::Tile { axis, factor, tile, stride } => {
                let element_stride = self.factor(factor)?;
                self.fresh(&[tile, stride])?;
                let is_tile = |b: &&mut Boxed| matches!(&b.tile[..], [only] if only.name == axis.text);
                let consumed = self.consumed(&axis.text).is_some();
                let owner = self.axes.iter_mut().find_map(|a| a.boxed.as_mut().filter(is_tile));
                let Some(boxed) = owner.filter(|_| !consumed) else { return Err(self.no_axis(axis, true)) };
                if boxed.phase.is_some() {
                    return Err(Refusal::Twice { name: axis.text.clone(), span: op.span });
                }
                boxed.element_stride = element_stride;
                boxed.tile = vec![TileAxis { name: tile.text.clone(), extent: boxed.slots() }];
                boxed.phase = Some(stride.text.clone());
                boxed.striding = Some(op.span);
                Ok(())
            }
            OpKind::Resize { axis, left, right, into } => self.resize(axis, [left, right], into, op.span),
            OpKind::Reorder { .. } => {
                let instead = Some("the order of a buffer is that of its `layout`");
                Err(Refusal::NotYet { construct: "reorder", span: op.keyword, instead })
            }
            OpKind::Region { .. } => {
                let instead = Some("the accelerator copies boxes: `box` says which");
                Err(Refusal::NotYet { construct: "region", span: op.keyword, instead })
            }
            _ => Err(Refusal::NotYet { construct: "this op", span: op.keyword, instead: None }),
        }
    }

    fn factor(&self, e: &ast::Expr) -> Result<i128, Refusal> {
        let value = (self.literal)(e);
        value.filter(|f| *f >= 1).ok_or(Refusal::Factor { value, span: e.span })
    }

    /// Position of an axis that has no box yet.
    fn unboxed(&self, name: &ast::Name) -> Result<usize, Refusal> {
        let at = self.axes.iter().position(|a| a.name == name.text).ok_or_else(|| self.no_axis(name, false))?;
        match &self.axes[at].boxed {
            Some(_) => Err(Refusal::Twice { name: name.text.clone(), span: name.span }),
            None if self.consumed(&name.text).is_some() => Err(self.no_axis(name, false)),
            None => Ok(at),
        }
    }

    fn is_in_view(&self, name: &ast::Name) -> bool {
        self.unboxed(name).is_ok()
    }

    /// The op on axes of the tile that replaced the axis of this name.
    fn consumed(&self, name: &str) -> Option<Span> {
        self.tile_ops.iter().find(|op| op.inputs.iter().any(|n| n == name)).map(|op| op.span)
    }

    /// The axes of the tile that no op has replaced. What has no box is whole in the tile.
    fn tile_axes(&self) -> Vec<&str> {
        let of_view = self.axes.iter().flat_map(|a| match &a.boxed {
            Some(boxed) => boxed.tile.iter().map(|t| t.name.as_str()).collect(),
            None => vec![a.name.as_str()],
        });
        let made = self.tile_ops.iter().flat_map(|op| op.outputs.iter().map(|(name, _)| name.as_str()));
        of_view.chain(made).filter(|n| self.consumed(n).is_none()).collect()
    }

    fn no_axis(&self, name: &ast::Name, tiles: bool) -> Refusal {
        let known = match tiles {
            true => self.tile_axes().into_iter().map(str::to_owned).collect(),
            false => self.axes.iter().filter(|a| a.boxed.is_none()).map(|a| a.name.clone()).collect(),
        };
        Refusal::NoAxis { name: name.text.clone(), span: name.span, known, consumed: self.consumed(&name.text) }
    }

    /// An op on axes of the tile. Merging all that a composite box consists of, in order, makes them one axis, which
    /// may be strided.
    fn tile_op(
        &mut self,
        kind: TileOpKind,
        inputs: &[&ast::Name],
        outputs: &[&ast::Name],
        span: Span,
    ) -> Result<(), Refusal> {
        let known = self.tile_axes();
        for (at, name) in inputs.iter().enumerate() {
            if !known.contains(&name.text.as_str()) {
                // Of an axis that has a box, that is what is wrong.
                return Err(self.unboxed(name).err().filter(|r| matches!(r, Refusal::Twice { .. })))
                    .map_err(|twice| twice.unwrap_or_else(|| self.no_axis(name, true)));
            }
            if let Some(first) = inputs[..at].iter().find(|n| n.text == name.text) {
                return Err(Refusal::Taken { name: name.text.clone(), span: name.span, first: first.span });
            }
        }
        self.fresh(outputs)?;
        let is_whole =
            |b: &&mut Boxed| b.tile.len() > 1 && b.tile.iter().map(|t| &t.name).eq(inputs.iter().map(|n| &n.text));
        if let (TileOpKind::Merge, [into]) = (kind, outputs)
            && let Some(boxed) = self.axes.iter_mut().find_map(|a| a.boxed.as_mut().filter(is_whole))
        {
            boxed.tile = vec![TileAxis { name: into.text.clone(), extent: boxed.slots() }];
            return Ok(());
        }
        if self.tile_ops.len() == MOST_TILE_OPS {
            let instead = Some("write the swizzle by its span: `layout [..] swizzle 128`, for instance");
            return Err(Refusal::NotYet { construct: "a 65th op on axes of a tile", span, instead });
        }
        self.tile_ops.push(TileOp {
            kind,
            inputs: inputs.iter().map(|n| n.text.clone()).collect(),
            outputs: outputs.iter().map(|n| (n.text.clone(), n.span)).collect(),
            span,
        });
        Ok(())
    }

    /// Padding around an axis. Boxes are cut from the region that is read, which starts before the tensor where
    /// the reads do: what the accelerator fills there is the padding, so that the axis only gets its name.
    fn resize(
        &mut self,
        axis: &ast::Name,
        [left, right]: [&ast::Expr; 2],
        into: &ast::Name,
        span: Span,
    ) -> Result<(), Refusal> {
        let at = self.unboxed(axis)?;
        self.fresh(&[into])?;
        let padding = |e: &ast::Expr| {
            let value = (self.literal)(e);
            value.filter(|n| *n >= 0).ok_or(Refusal::NotYet {
                construct: "`resize` by less than 0",
                span: e.span,
                instead: None,
            })
        };
        let padded = padding(left)? + padding(right)? > 0;
        let axis = &mut self.axes[at];
        (axis.name, axis.span, axis.padded) = (into.text.clone(), span, axis.padded || padded);
        Ok(())
    }

    /// Position of an axis that has no box and no padding: what lies in memory.
    fn in_memory(&self, name: &ast::Name) -> Result<usize, Refusal> {
        let at = self.unboxed(name)?;
        match self.axes[at].padded {
            true => {
                Err(Refusal::NotYet { construct: "a split or merge of a padded axis", span: name.span, instead: None })
            }
            false => Ok(at),
        }
    }

    /// Whether these names are new, and different from each other.
    fn fresh(&self, names: &[&ast::Name]) -> Result<(), Refusal> {
        for (at, name) in names.iter().enumerate() {
            let made = |b: &Boxed| {
                let tile = b.tile.iter().map(|t| &t.name);
                b.coordinates.iter().chain(tile).chain(&b.phase).any(|n| *n == name.text)
            };
            let own = |a: &ViewAxis| (a.name == name.text).then_some(a.span);
            let of_box = |a: &ViewAxis| a.boxed.as_ref().filter(|b| made(b)).map(|b| b.span);
            let by_op = || self.tile_ops.iter().flat_map(|op| &op.outputs).find(|o| o.0 == name.text).map(|o| o.1);
            let before = self.axes.iter().find_map(|a| own(a).or_else(|| of_box(a))).or_else(by_op);
            let beside = names[..at].iter().find(|n| n.text == name.text).map(|n| n.span);
            if let Some(first) = before.or(beside) {
                return Err(Refusal::Taken { name: name.text.clone(), span: name.span, first });
            }
        }
        Ok(())
    }

    fn split(
        &mut self,
        axis: &ast::Name,
        side: ast::SplitSide,
        factor: &ast::Expr,
        names: [&ast::Name; 2],
        span: Span,
    ) -> Result<(), Refusal> {
        let at = self.in_memory(axis)?;
        let factor = self.factor(factor)?;
        self.fresh(&names)?;
        let input = self.axes[at].clone();
        if !self.facts.proves_multiple(&input.size, factor) {
            return Err(Refusal::Indivisible { size: input.size, factor, span });
        }
        let (literal, other) =
            (Expr::constant(factor), self.facts.normal(&input.size.floor_div(&Expr::constant(factor))));
        let [outer_size, inner_size] = match side {
            ast::SplitSide::Inner => [other, literal],
            ast::SplitSide::Outer => [literal, other],
        };
        let new = |name: &ast::Name, size: Expr, stride: Expr, indices: Vec<Expr>| ViewAxis {
            name: name.text.clone(),
            span: name.span,
            size,
            stride,
            indices,
            dims: input.dims.clone(),
            aliased: input.aliased.clone(),
            padded: false,
            boxed: None,
        };
        let of = |f: &dyn Fn(&Expr) -> Expr| input.indices.iter().map(|i| self.facts.normal(&f(i))).collect();
        let outer_stride = self.facts.normal(&input.stride.mul(&inner_size));
        let outer = new(names[0], outer_size, outer_stride, of(&|i| i.floor_div(&inner_size)));
        let inner_indices = of(&|i| i.modulo(&inner_size));
        let inner = new(names[1], inner_size, input.stride.clone(), inner_indices);
        self.axes.splice(at..=at, [outer, inner]);
        Ok(())
    }

    fn merge_names(&mut self, names: &[ast::Name], into: &ast::Name, span: Span) -> Result<(), Refusal> {
        let positions: Vec<usize> = names.iter().map(|n| self.in_memory(n)).collect::<Result<_, _>>()?;
        self.fresh(&[into])?;
        let merged = self.merged(&positions, into.text.clone(), into.span, span)?;
        self.axes.splice(positions[0]..positions[0] + positions.len(), [merged]);
        Ok(())
    }

    /// The axis that these neighbours make together.
    fn merged(&self, positions: &[usize], name: String, at: Span, op: Span) -> Result<ViewAxis, Refusal> {
        let mut axis = ViewAxis { name, span: at, ..self.axes[positions[0]].clone() };
        for pair in positions.windows(2) {
            let (outer, inner) = (&self.axes[pair[0]], &self.axes[pair[1]]);
            let run = self.facts.normal(&inner.size.mul(&inner.stride));
            let follows = self.facts.normal(&outer.stride) == run || outer.size.as_constant() == Some(1);
            if pair[1] != pair[0] + 1 || !follows {
                return Err(Refusal::Discontiguous {
                    outer: outer.name.clone(),
                    inner: inner.name.clone(),
                    measures: Box::new([outer.stride.clone(), inner.stride.clone(), inner.size.clone()]),
                    span: op,
                });
            }
            axis.size = self.facts.normal(&axis.size.mul(&inner.size));
            axis.stride = inner.stride.clone();
            axis.dims.extend(&inner.dims);
            axis.aliased.extend(inner.dims.iter().chain(&inner.aliased));
            let joined = axis.indices.iter().zip(&inner.indices);
            axis.indices = joined.map(|(o, i)| self.facts.normal(&o.mul(&inner.size).add(i))).collect();
        }
        Ok(axis)
    }

    /// A composite box: a run of axes, merged in thought, whose innermost ones are the box. Merging and then splitting
    /// by the extent of the box axes gives the axes back, so that nothing has to divide.
    fn composite(&mut self, coordinates: &[ast::Name], boxed: &[ast::Name], span: Span) -> Result<(), Refusal> {
        let names: Vec<&ast::Name> = coordinates.iter().chain(boxed).collect();
        let positions: Vec<usize> = names.iter().map(|n| self.in_memory(n)).collect::<Result<_, _>>()?;
        let mut box_size = 1i128;
        for at in &positions[coordinates.len()..] {
            let size = &self.axes[*at].size;
            let extent = size.as_constant().and_then(|n| box_size.checked_mul(n));
            box_size = extent.ok_or_else(|| Refusal::SymbolicBox { size: size.clone(), span })?;
        }
        let name = names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join("·");
        let mut axis = self.merged(&positions, name, names[0].span, span)?;
        // Their product, the size of the box, is a number.
        let part = |(name, at): (&ast::Name, &usize)| TileAxis {
            name: name.text.clone(),
            extent: self.axes[*at].size.as_constant().unwrap_or(1),
        };
        let tile = boxed.iter().zip(&positions[coordinates.len()..]).map(part).collect();
        axis.boxed = Some(Boxed {
            box_size,
            element_stride: 1,
            coordinates: coordinates.iter().map(|n| n.text.clone()).collect(),
            tile,
            phase: None,
            span,
            striding: None,
        });
        self.axes.splice(positions[0]..positions[0] + positions.len(), [axis]);
        Ok(())
    }
}
