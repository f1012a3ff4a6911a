//! Schedule ops: what stands between the braces of `schedule` and `stage`.

use super::cursor::{Parse, Parser, Reported};
use crate::diag::codes::{Expected, Foreign, Named, UnknownWord, WordSet, WrongSplit};
use crate::source::ast::{
    AxisRef, BlockOrder, FillModel, L2Hint, LayoutAxis, MmaEngine, Name, OPS, Op, OpKind, ReduceBy, RegionKind,
    SplitSide, SwizzleFunction,
};
use crate::source::{Delimiter, Span};

const L2_HINTS: &[&str] = &["promote", "evict_first", "evict_last"];

impl Parser<'_> {
    /// `{ op; op; … }`, or `;` for none. An op that does not parse is reported and left out.
    pub(super) fn ops(&mut self) -> Parse<Vec<Op>> {
        if self.eat_operator(";").is_some() {
            return Ok(Vec::new());
        }
        if !self.is_open(Delimiter::Brace) {
            return Err(self.unexpected(Expected::Block));
        }
        self.group(Delimiter::Brace, |p| {
            let mut ops = Vec::new();
            while !p.at_end() {
                if p.eat_operator(";").is_some() {
                    continue;
                }
                match p.op(&mut ops) {
                    Ok(()) => {
                        p.end_statement(|p| p.word().is_some_and(|word| OPS.contains(&word)));
                    }
                    Err(Reported) => p.skip_statement(),
                }
            }
            Ok(ops)
        })
    }

    /// Adds an op, or those that a split by several factors stands for.
    fn op(&mut self, ops: &mut Vec<Op>) -> Parse<()> {
        let keyword = self.here();
        let Some(word) = self.word() else { return Err(self.unexpected(Expected::Word(WordSet::Op))) };
        if !OPS.contains(&word) {
            let word = word.to_owned();
            self.diagnostics.report(UnknownWord { set: WordSet::Op, word, span: keyword, known: OPS });
            return Err(Reported);
        }
        self.bump();
        let kind = match word {
            "split" => return self.split(keyword, ops),
            "merge" => self.merge(),
            "reorder" => self.axes().map(|axes| OpKind::Reorder { axes }),
            "resize" => self.resize(),
            "swizzle" => self.swizzle(),
            "bind" => self.bind(),
            "vectorize" => self.axis().map(|axis| OpKind::Vectorize { axis }),
            "unroll" => self.unroll(),
            "reduce" => self.reduce(),
            "like" => self.like(),
            "box" => self.boxing(),
            "tile" => self.tile(),
            "layout" => self.layout(),
            "multicast" => self.multicast(),
            "mma" => self.mma(),
            "fragment" => self.fragment(),
            "fill" => self
                .one_of(WordSet::FillModel, FillModel::WORDS, FillModel::from_word)
                .map(|model| OpKind::Fill { model }),
            "region" => self.region(),
            "l2" => self.l2(),
            "online" => self.online(),
            // A word of the list that is not here yet.
            _ => Err(self.unexpected(Expected::Word(WordSet::Op))),
        }?;
        ops.push(Op { kind, keyword, span: self.since(keyword) });
        Ok(())
    }

    fn axis(&mut self) -> Parse<Name> {
        self.name(Named::Axis)
    }

    /// `i, j, k`: at least one, no comma at the end.
    fn axes(&mut self) -> Parse<Vec<Name>> {
        let mut axes = vec![self.axis()?];
        while self.eat_operator(",").is_some() {
            axes.push(self.axis()?);
        }
        Ok(axes)
    }

    fn arrow(&mut self) -> Parse<Span> {
        self.expect_operator("->")
    }

    /// `-> a, b`
    fn arrow_two(&mut self) -> Parse<(Name, Name)> {
        self.arrow()?;
        let first = self.axis()?;
        if self.eat_operator(",").is_none() {
            return Err(self.unexpected(Expected::SecondAxis));
        }
        Ok((first, self.axis()?))
    }

    fn split(&mut self, keyword: Span, ops: &mut Vec<Op>) -> Parse<()> {
        let axis = self.axis()?;
        let side = if self.eat_word("into").is_some() {
            SplitSide::Outer
        } else {
            self.expect_word("by")?;
            SplitSide::Inner
        };
        let first = self.expr()?;
        if !self.is_operator(",") {
            let (outer, inner) = self.arrow_two()?;
            let kind = OpKind::Split { axis, side, factor: first, outer, inner };
            ops.push(Op { kind, keyword, span: self.since(keyword) });
            return Ok(());
        }
        let mut factors = vec![first];
        while self.eat_operator(",").is_some() {
            factors.push(self.expr()?);
        }
        self.arrow()?;
        let names = self.axes()?;
        let span = self.since(keyword);
        if names.len() != factors.len() + 1 {
            self.diagnostics.report(WrongSplit { factors: factors.len(), names: names.len(), span });
            return Err(Reported);
        }
        // Each one splits what the one before left over. Its place is that of its factor, by which it may be wrong.
        let mut axis = axis;
        let last = factors.len() - 1;
        for (at, factor) in factors.into_iter().enumerate() {
            let inner = if at == last { names[at + 1].clone() } else { Name::rest(&names[at + 1..]) };
            let next = inner.clone();
            let span = factor.span;
            let kind = OpKind::Split { axis, side, factor, outer: names[at].clone(), inner };
            ops.push(Op { kind, keyword, span });
            axis = next;
        }
        Ok(())
    }

    fn merge(&mut self) -> Parse<OpKind> {
        let axes = self.axes()?;
        self.arrow()?;
        Ok(OpKind::Merge { axes, into: self.axis()? })
    }

    fn resize(&mut self) -> Parse<OpKind> {
        let axis = self.axis()?;
        self.expect_word("by")?;
        let (left, right) = self.group(Delimiter::Paren, |p| {
            let left = p.expr()?;
            p.expect_operator(",")?;
            Ok((left, p.expr()?))
        })?;
        self.arrow()?;
        Ok(OpKind::Resize { axis, left, right, into: self.axis()? })
    }

    fn swizzle(&mut self) -> Parse<OpKind> {
        let x = self.axis()?;
        self.expect_operator(",")?;
        let y = self.axis()?;
        self.expect_word("by")?;
        let function = self.one_of(WordSet::SwizzleFunction, SwizzleFunction::WORDS, SwizzleFunction::from_word)?;
        let (x_into, y_into) = self.arrow_two()?;
        Ok(OpKind::Swizzle { x, y, function, x_into, y_into })
    }

    /// `thread.x`, as in CUDA.
    fn unit_dimension<T>(&mut self, unit: &Name) -> Parse<T> {
        let known = match unit.text.as_str() {
            "thread" | "threadIdx" => Some("thread"),
            "grid" | "block" | "blockIdx" => Some("grid"),
            _ => None,
        };
        self.bump();
        let span = if self.word().is_some() { unit.span.to(self.bump()) } else { unit.span };
        self.foreign(Foreign::UnitDimension(known), span)
    }

    fn bind(&mut self) -> Parse<OpKind> {
        let axes = self.axes()?;
        self.expect_operator(":")?;
        let scaled = self.literal().is_some()
            || self.is_open(Delimiter::Paren)
            || (self.word().is_some()
                && self
                    .word_at(1)
                    .is_some_and(|next| !OPS.contains(&next) && !["raster", "alternate"].contains(&next))
                && !self.is_operator_at(2, ".."));
        let scale = if scaled { Some(self.expr()?) } else { None };
        let unit = self.name(Named::Unit)?;
        if self.is_operator_at(0, ".") {
            return self.unit_dimension(&unit);
        }
        let ranged = self.literal().is_some()
            || self.is_open(Delimiter::Paren)
            || (self.word().is_some() && (self.is_operator_at(1, "..") || self.is_operator_at(1, "..=")));
        let range = if ranged { Some(self.range()?) } else { None };
        let (mut raster, mut raster_at) = (None, None);
        while let Some(word) = self.word() {
            let span = self.here();
            match word {
                "raster" => {
                    self.bump();
                    let groups = self.group_list(Delimiter::Paren, |p| {
                        let axis = p.axis()?;
                        p.expect_operator(":")?;
                        let order = match p.eat_word("descending") {
                            Some(_) => BlockOrder::Descending,
                            None => BlockOrder::Groups(p.expr()?),
                        };
                        Ok((axis, order))
                    })?;
                    self.once(&mut raster, &mut raster_at, "raster", span, groups);
                }
                _ if OPS.contains(&word) => break,
                _ => {
                    let known = &["raster"];
                    let word = word.to_owned();
                    self.diagnostics.report(UnknownWord { set: WordSet::BindOption, word, span, known });
                    return Err(Reported);
                }
            }
        }
        Ok(OpKind::Bind { axes, scale, unit, range, raster: raster.unwrap_or_default() })
    }

    fn unroll(&mut self) -> Parse<OpKind> {
        let axis = self.axis()?;
        let by = match self.eat_word("by") {
            Some(_) => Some(self.expr()?),
            None => None,
        };
        Ok(OpKind::Unroll { axis, by })
    }

    fn reduce(&mut self) -> Parse<OpKind> {
        let axes = self.axes()?;
        let by = match self.eat_word("by") {
            Some(_) => Some(self.one_of(WordSet::ReduceLevel, ReduceBy::WORDS, ReduceBy::from_word)?),
            None => None,
        };
        Ok(OpKind::Reduce { axes, by })
    }

    fn like(&mut self) -> Parse<OpKind> {
        let stage = self.name(Named::Stage)?;
        let operand = match self.eat_operator(".") {
            Some(_) => Some(self.name(Named::Tensor)?),
            None => None,
        };
        Ok(OpKind::Like { stage, operand })
    }

    fn region(&mut self) -> Parse<OpKind> {
        let kind = self.one_of(WordSet::RegionKind, RegionKind::WORDS, RegionKind::from_word)?;
        let named = kind.value == RegionKind::Flat && self.eat_operator("->").is_some();
        let into = if named { Some(self.axis()?) } else { None };
        Ok(OpKind::Region { kind, into })
    }

    fn boxing(&mut self) -> Parse<OpKind> {
        if self.is_open(Delimiter::Paren) {
            return self.group(Delimiter::Paren, |p| {
                let coordinates = p.list(|p| p.is_operator(";"), Self::axis)?;
                p.expect_operator(";")?;
                let boxed = p.list(|_| false, Self::axis)?;
                Ok(OpKind::BoxRun { coordinates, boxed })
            });
        }
        let axis = self.axis()?;
        self.expect_word("by")?;
        let factor = self.expr()?;
        let (coordinate, inner) = self.arrow_two()?;
        Ok(OpKind::Box { axis, factor, coordinate, inner })
    }

    fn tile(&mut self) -> Parse<OpKind> {
        let axis = self.axis()?;
        self.expect_word("by")?;
        let factor = self.expr()?;
        let (tile, stride) = self.arrow_two()?;
        Ok(OpKind::Tile { axis, factor, tile, stride })
    }

    fn layout(&mut self) -> Parse<OpKind> {
        let axes = self.group_list(Delimiter::Bracket, |p| {
            let name = p.axis()?;
            let pad = match p.eat_word("pad") {
                Some(_) => Some(p.expr()?),
                None => None,
            };
            Ok(LayoutAxis { name, pad })
        })?;
        // `swizzle` is also an op: after a missing `;`, two axes follow instead of a number.
        let swizzle = if self.is_word("swizzle") && !self.is_operator_at(2, ",") {
            self.bump();
            Some(self.expr()?)
        } else {
            None
        };
        Ok(OpKind::Layout { axes, swizzle })
    }

    /// `STAGE.AXIS`
    pub(super) fn axis_ref(&mut self) -> Parse<AxisRef> {
        let stage = self.name(Named::Stage)?;
        self.expect_operator(".")?;
        let axis = self.axis()?;
        let span = stage.span.to(axis.span);
        Ok(AxisRef { stage, axis, span })
    }

    fn multicast(&mut self) -> Parse<OpKind> {
        let axis = self.axis_ref()?;
        let by = match self.eat_word("by") {
            Some(_) => Some(self.axis()?),
            None => None,
        };
        Ok(OpKind::Multicast { axis, by })
    }

    fn mma(&mut self) -> Parse<OpKind> {
        let (m, n, k) = self.group(Delimiter::Paren, |p| {
            let m = p.axis()?;
            p.expect_operator(",")?;
            let n = p.axis()?;
            p.expect_operator(",")?;
            Ok((m, n, p.axis()?))
        })?;
        self.expect_word("by")?;
        let engine = self.one_of(WordSet::MmaEngine, MmaEngine::WORDS, MmaEngine::from_word)?;
        let inflight = match self.eat_word("inflight") {
            Some(_) => Some(self.group(Delimiter::Paren, Self::expr)?),
            None => None,
        };
        Ok(OpKind::Mma { m, n, k, engine, inflight })
    }

    fn fragment(&mut self) -> Parse<OpKind> {
        let (m, n) = self.group(Delimiter::Paren, |p| {
            let m = p.axis()?;
            Ok((m, p.eat_operator(",").map(|_| p.axis()).transpose()?))
        })?;
        self.expect_word("by")?;
        let engine = self.one_of(WordSet::MmaEngine, MmaEngine::WORDS, MmaEngine::from_word)?;
        Ok(OpKind::Fragment { m, n, engine })
    }

    fn l2(&mut self) -> Parse<OpKind> {
        let index = |word: &str| L2_HINTS.iter().position(|&known| known == word);
        let hint = match self.one_of(WordSet::L2Hint, L2_HINTS, index)?.value {
            0 => L2Hint::Promote(self.group(Delimiter::Paren, Self::expr)?),
            1 => L2Hint::EvictFirst,
            _ => L2Hint::EvictLast,
        };
        Ok(OpKind::L2 { hint })
    }

    fn online(&mut self) -> Parse<OpKind> {
        let source = self.name(Named::Stage)?;
        self.arrow()?;
        let mut targets = vec![self.name(Named::Stage)?];
        while self.eat_operator(",").is_some() {
            targets.push(self.name(Named::Stage)?);
        }
        self.expect_word("over")?;
        Ok(OpKind::Online { source, targets, axis: self.axis()? })
    }
}
