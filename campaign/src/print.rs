//! Kernels as source text, so that the real parser reads them.

use std::fmt;

use crate::ast::{Bound, Equation, Fact, Index, Kernel, Node, Op, Parameter, Role, Size, Value};

struct Joined<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dim) = &self.dim else { return write!(f, "{}", self.add) };
        if self.mul != 1 {
            write!(f, "{} * ", self.mul)?;
        }
        f.write_str(dim)?;
        if let Some(times) = &self.times {
            write!(f, " * {times}")?;
        }
        if self.div != 1 {
            write!(f, " / {}", self.div)?;
        }
        match self.add {
            0 => Ok(()),
            add if add < 0 => write!(f, " - {}", -add),
            add => write!(f, " + {add}"),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiple(d, by) => write!(f, "{d} % {by} == 0"),
            Self::AtMost(d, most) => write!(f, "{d} <= {most}"),
            Self::AtLeast(d, least) => write!(f, "{d} >= {least}"),
            Self::Equal(d, value) => write!(f, "{d} == {value}"),
            Self::Times(a, factor, b) => write!(f, "{a} == {factor} * {b}"),
            Self::Residue(d, by, rest) => write!(f, "{d} % {by} == {rest}"),
            Self::NotEqual(d, value) => write!(f, "{d} != {value}"),
            Self::NotMore(a, b) => write!(f, "{a} <= {b}"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.role == Role::InOut {
            f.write_str("inout ")?;
        }
        write!(f, "{}: {}", self.name, self.ty)?;
        let Some(shape) = &self.shape else { return Ok(()) };
        write!(f, "[{}", Joined(shape))?;
        if let Some(strides) = &self.strides {
            write!(f, "; {}", Joined(strides))?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(c) if *c < 0 => write!(f, "({c})"),
            Self::Literal(c) => write!(f, "{c}"),
            Self::Dim(name) | Self::Axis(name) => f.write_str(name),
            Self::Add(a, b) => write!(f, "({a} + {b})"),
            Self::Sub(a, b) => write!(f, "({a} - {b})"),
            Self::Mul(a, b) => write!(f, "({a} * {b})"),
            Self::Div(a, c) => write!(f, "({a} / {c})"),
            Self::Mod(a, c) => write!(f, "({a} % {c})"),
            Self::Min(a, b) => write!(f, "min({a}, {b})"),
            Self::Max(a, b) => write!(f, "max({a}, {b})"),
            Self::Gather(v) => write!(f, "{v}"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.axis)?;
        match (self.written, self.inclusive) {
            (false, _) => Ok(()),
            (true, false) => write!(f, " in {}..{}", self.lower, self.upper),
            (true, true) => write!(f, " in {}..={} - 1", self.lower, self.upper),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Literal(text) | Node::Name(text) => f.write_str(text),
            Node::FromIndex(index) => write!(f, "({index} as {})", self.ty),
            Node::Read { tensor, indices, or: None } => write!(f, "{tensor}[{}]", Joined(indices)),
            Node::Read { tensor, indices, or: Some(or) } => write!(f, "({tensor}[{}] or {or})", Joined(indices)),
            Node::Prefix(op, a) => write!(f, "({op}({a}))"),
            Node::Call(name, list) => write!(f, "{name}({})", Joined(list)),
            Node::Infix(op, a, b) => write!(f, "({a} {op} {b})"),
            Node::CompareIndex(op, a, b) => write!(f, "({a} {op} {b})"),
            Node::Select(c, a, b) => write!(f, "(if {c} {{ {a} }} else {{ {b} }})"),
            Node::Cast(a) => write!(f, "({a} as {})", self.ty),
            Node::Reduce { op, axes, body } => write!(f, "{op}(|{}| {body})", Joined(axes)),
            Node::Fold { axes, states } => {
                let tuple = |parts: Vec<String>| {
                    if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(", ")) }
                };
                let init = tuple(states.iter().map(|s| s.init.to_string()).collect());
                let name = |k: usize| tuple(states.iter().map(|s| s.names[k].clone()).collect());
                let step = tuple(states.iter().map(|s| s.step.to_string()).collect());
                write!(f, "fold(|{}| init {init}, step {} => {step}", Joined(axes), name(0))?;
                let merge: Option<Vec<String>> =
                    states.iter().map(|s| s.merge.as_ref().map(Value::to_string)).collect();
                if let Some(merge) = merge {
                    write!(f, ", merge ({}, {}) => {}", name(1), name(2), tuple(merge))?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Equation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.targets[..] {
            [one] => f.write_str(one)?,
            several => write!(f, "({})", Joined(several))?,
        }
        let axis = |(name, size): &(String, Size), lower: i64| {
            let last = Size { add: size.add + lower - i64::from(self.inclusive), ..size.clone() };
            let dots = if self.inclusive { "..=" } else { ".." };
            format!("{name} in {lower}{dots}{last}")
        };
        let axes: Vec<String> = (self.axes.iter().zip(&self.lower))
            .map(|(a, lower)| if self.domain_written { axis(a, *lower) } else { a.0.clone() })
            .collect();
        write!(f, "[{}] = {};", axes.join(", "), self.value)?;
        if self.inline { write!(f, "\n    inline {};", self.targets[0]) } else { Ok(()) }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { input, into, factor, named, outputs: [a, b] } => {
                let factor = named.clone().unwrap_or_else(|| factor.to_string());
                write!(f, "split {input} {} {factor} -> {a}, {b};", if *into { "into" } else { "by" })
            }
            Self::Merge(inputs, output) => write!(f, "merge {} -> {output};", Joined(inputs)),
            Self::Reorder(axes) => write!(f, "reorder {};", Joined(axes)),
            Self::Resize(input, l, r, output) => write!(f, "resize {input} by ({l}, {r}) -> {output};"),
            Self::Swizzle([x, y], [x2, y2]) => write!(f, "swizzle {x}, {y} by xor -> {x2}, {y2};"),
            Self::Bind(axes, unit) => write!(f, "bind {}: {unit};", Joined(axes)),
            Self::Vectorize(axis) => write!(f, "vectorize {axis};"),
            Self::Unroll(axis, None) => write!(f, "unroll {axis};"),
            Self::Unroll(axis, Some(by)) => write!(f, "unroll {axis} by {by};"),
        }
    }
}

/// The first of these ops that are written as one split by several factors: about half of those that can be.
fn levels(ops: &[Op]) -> &[Op] {
    let mut count = 0;
    while let Some(Op::Split { input, into: way, factor, .. }) = ops.get(count) {
        let goes_on = match &ops[..count] {
            [] => factor % 2 == 0,
            [.., Op::Split { into, outputs, .. }] => into == way && outputs[1] == *input,
            _ => false,
        };
        if !goes_on {
            break;
        }
        count += 1;
    }
    &ops[..count]
}

/// Splits of what each leaves to the next one, as one op.
struct Levels<'a>(&'a [Op]);

impl fmt::Display for Levels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut factors, mut names, mut of) = (Vec::new(), Vec::new(), String::new());
        for op in self.0 {
            let Op::Split { input, into, factor, named, outputs: [outer, inner] } = op else { continue };
            if of.is_empty() {
                of = format!("split {input} {}", if *into { "into" } else { "by" });
            } else {
                names.pop();
            }
            factors.push(named.clone().unwrap_or_else(|| factor.to_string()));
            names.extend([outer.as_str(), inner.as_str()]);
        }
        write!(f, "{of} {} -> {};", factors.join(", "), names.join(", "))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_output = |p: &&Parameter| p.role == Role::Output;
        let inputs: Vec<&Parameter> = self.parameters.iter().filter(|p| !is_output(p)).collect();
        let outputs: Vec<&Parameter> = self.parameters.iter().filter(is_output).collect();
        if let Some(code) = self.allow {
            writeln!(f, "#[allow({code})]")?;
        }
        write!(f, "kernel K({})", Joined(&inputs))?;
        if !outputs.is_empty() {
            write!(f, " -> ({})", Joined(&outputs))?;
        }
        let facts: Vec<String> = self.facts.iter().map(Fact::to_string).collect();
        if !facts.is_empty() {
            write!(f, "\nwhere {}", facts.join(", "))?;
        }
        writeln!(f, "\n{{")?;
        for equation in &self.equations {
            writeln!(f, "    {equation}")?;
        }
        if let Some(threads) = self.threads {
            writeln!(f, "    launch threads({threads});")?;
        }
        for (stage, ops) in &self.schedules {
            writeln!(f, "    schedule {stage} {{")?;
            let mut left = &ops[..];
            while let [op, rest @ ..] = left {
                let levels = levels(left);
                if levels.len() > 1 {
                    writeln!(f, "        {}", Levels(levels))?;
                    left = &left[levels.len()..];
                } else {
                    writeln!(f, "        {op}")?;
                    left = rest;
                }
            }
            writeln!(f, "    }}")?;
        }
        f.write_str("}\n")
    }
}
