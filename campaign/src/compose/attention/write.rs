//! The kernel that decisions say.

use std::fmt;

use super::{Attention, Heads, Of, Pages, Range, Reader, Scores, Sum};
use crate::compose::products::Engine;

impl Sum {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "l",
            Self::Rounded => "lr",
            Self::Twice => "lt",
            Self::Weighted => "lw",
            Self::Scored => "ls",
        }
    }

    fn term(self, batch: &str, score: &str) -> String {
        match self {
            Self::Plain => format!("p[{batch}i, j]"),
            Self::Rounded => format!("pb[{batch}i, j] as f32"),
            Self::Twice => format!("p[{batch}i, j] * 2.0"),
            Self::Weighted => format!("p[{batch}i, j] * w[j]"),
            Self::Scored => format!("p[{batch}i, j] * {score}"),
        }
    }
}

impl Attention {
    /// The loop around blocks.
    pub(super) fn loop_of_blocks(&self) -> &'static str {
        if self.again.is_some() { "jq" } else { "jo" }
    }

    /// The tensors of queries, keys and values.
    pub(super) fn tensors(&self) -> [&'static str; 3] {
        if self.same { ["q", "k", "k"] } else { ["q", "k", "v"] }
    }

    fn batch(&self) -> &'static str {
        if self.heads == Heads::One { "" } else { "h, " }
    }

    /// The element of keys and values that belongs to a row.
    fn group(&self) -> String {
        match self.heads {
            Heads::One => String::new(),
            Heads::Own => "h, ".to_owned(),
            Heads::Grouped(n) => format!("h / {n}, "),
        }
    }

    /// The numbers of rows and of terms.
    fn extents(&self) -> [String; 2] {
        let terms = match (self.literal, self.pages) {
            (Some(n), _) => n.to_string(),
            (None, Some(pages)) => format!("{} * L", pages.terms),
            (None, None) => "N".to_owned(),
        };
        let rows = if self.square { terms.clone() } else { "M".to_owned() };
        [rows, terms]
    }

    /// Whether the product of a block is under way while the next one's scores are computed: its factor is held, and
    /// another role copies the other one for it alone.
    pub fn is_behind(&self) -> bool {
        let is_handed = self.roles.is_some() && self.copies[2].tma && !self.same;
        self.behind && is_handed && self.engine == Engine::Wgmma && self.held[2]
    }

    /// The axis of terms on the left of an equation: no shape tells its range where terms lie in pages.
    fn axis_of_terms(&self) -> String {
        let [_, terms] = self.extents();
        self.pages.map_or("j".to_owned(), |_| format!("j in 0..{terms}"))
    }

    /// An element of keys (1) or values (2), of a term and `own`.
    fn element(&self, n: usize, own: &str) -> String {
        let (tensor, group) = (self.tensors()[n], self.group());
        let is_turned = n == 2 && self.is_eight();
        let indices = |term: &str| if is_turned { format!("{own}, {term}") } else { format!("{term}, {own}") };
        let Some(pages) = self.pages_of(n) else { return format!("{tensor}[{group}{}]", indices("j")) };
        let Pages { terms, plus, of_tables, .. } = pages;
        let at = format!("j / {terms}");
        let table = match (of_tables, pages.own) {
            (true, _) => format!("(page[of[{}], {at}] or 0)", if self.heads == Heads::One { "0" } else { "h" }),
            (false, true) => format!("page[h, {at}]"),
            (false, false) => format!("page[{at}]"),
        };
        let plus = match plus {
            0 => String::new(),
            1.. => format!(" + {plus}"),
            _ => format!(" - {}", -plus),
        };
        format!("({tensor}[{group}{table}{plus}, {}] or 0.0)", indices(&format!("j % {terms}")))
    }

    /// The shape of keys (1) or values (2).
    fn shape(&self, n: usize, own: i64) -> String {
        let [_, terms] = self.extents();
        let group = match self.heads {
            Heads::One => "",
            Heads::Own => "H, ",
            Heads::Grouped(_) => "G, ",
        };
        let (pages, terms) = match self.pages_of(n) {
            Some(pages) => ("P, ", pages.terms.to_string()),
            None => ("", terms),
        };
        let is_turned = n == 2 && self.is_eight();
        let rows = if is_turned { format!("{own}, {terms}") } else { format!("{terms}, {own}") };
        format!("{}[{group}{pages}{rows}]", self.ty.name())
    }

    /// The table of pages, and what says whose it is, as parameters.
    fn tables(&self) -> Vec<String> {
        let Some(pages) = self.pages.filter(|_| (1..3).any(|n| self.pages_of(n).is_some())) else { return Vec::new() };
        let length = self.literal.map_or("L".to_owned(), |n| (n / pages.terms).to_string());
        let ty = pages.ty.name();
        match (pages.of_tables, pages.own) {
            (true, _) => {
                let of = if self.heads == Heads::One { "1" } else { "H" };
                vec![format!("page: {ty}[S, {length}]"), format!("of: i32[{of}]")]
            }
            (false, true) => vec![format!("page: {ty}[H, {length}]")],
            (false, false) => vec![format!("page: {ty}[{length}]")],
        }
    }

    fn range(&self) -> String {
        let [rows, terms] = self.extents();
        let (from, to) = match self.range {
            Range::All => ("0".to_owned(), terms),
            Range::Causal => ("0".to_owned(), "i + 1".to_owned()),
            Range::Before => ("0".to_owned(), "i".to_owned()),
            Range::Aligned => ("0".to_owned(), format!("{terms} - {rows} + i + 1")),
            Range::Late(n) => (n.to_string(), terms),
            Range::LateCausal(n) => (n.to_string(), "i + 1".to_owned()),
            Range::Window(n) => (format!("max(0, i - {n})"), "i + 1".to_owned()),
            Range::Around(n) => (format!("max(0, i - {n})"), format!("min(i + {n}, {terms})")),
        };
        let Some(memory) = self.memory else {
            return match to.strip_suffix(" + 1") {
                _ if self.range == Range::All && self.pages.is_none() => String::new(),
                Some(last) if last == "i" => format!(" in {from}..={last}"),
                _ => format!(" in {from}..{to}"),
            };
        };
        let at = match (memory.of, self.heads == Heads::One) {
            (Of::Head, true) => "0".to_owned(),
            (Of::Head, false) => "h".to_owned(),
            (Of::Tile, _) => format!("{}i / {}", self.batch(), self.tile()[1]),
            (Of::Row, _) => format!("{}i", self.batch()),
        };
        let from = if memory.from { format!("max(from[{at}], {from})") } else { from };
        let to = if memory.to { format!("min(to[{at}], {to})") } else { to };
        format!(" in {from}..{to}")
    }

    /// What memory says of terms, as parameters.
    fn of_memory(&self, batch: &str, rows: &str) -> Vec<String> {
        let Some(memory) = self.memory else { return Vec::new() };
        let shape = match (memory.of, self.heads == Heads::One) {
            (Of::Head, true) => "1".to_owned(),
            (Of::Head, false) => "H".to_owned(),
            (Of::Tile, _) => format!("{batch}T"),
            (Of::Row, _) => format!("{batch}{rows}"),
        };
        let names = [(memory.from, "from"), (memory.to, "to")];
        names.iter().filter(|n| n.0).map(|(_, name)| format!("{name}: i32[{shape}]")).collect()
    }

    fn signature(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = self.ty.name();
        let [head, width] = self.sizes;
        let [rows, terms] = self.extents();
        let batch = if self.heads == Heads::One { "" } else { "H, " };
        let mut inputs = Vec::new();
        inputs.push(format!("q: {ty}[{batch}{rows}, {head}]"));
        inputs.push(format!("k: {}", self.shape(1, head)));
        if !self.same {
            inputs.push(format!("v: {}", self.shape(2, width)));
        }
        inputs.extend(self.tables());
        if self.scores == Scores::Biased {
            inputs.push(format!("b: f32[{batch}{rows}, {terms}]"));
        }
        if self.scores == Scores::OfTerms {
            inputs.push(format!("b: f32[{terms}]"));
        }
        if self.sums.contains(&Sum::Weighted) {
            inputs.push(format!("w: f32[{terms}]"));
        }
        inputs.extend(self.of_memory(batch, &rows));
        let output = if self.narrow { ty } else { "f32" };
        let statistics = if self.statistics { format!(", z: f32[{batch}{rows}]") } else { String::new() };
        write!(f, "kernel Attention({}) -> (y: {output}[{batch}{rows}, {width}]{statistics})", inputs.join(", "))?;
        let mut facts = Vec::new();
        if self.literal.is_none() {
            if self.divides {
                facts.push(format!("{terms} % {} == 0", self.block * self.again.unwrap_or(1)));
            } else if self.is_eight() && self.pages.is_none() {
                // Rows of the values are multiples of 16 bytes.
                facts.push("N % 16 == 0".to_owned());
            }
            if self.least() > 0 {
                facts.push(format!("{terms} >= {}", self.least()));
            }
        }
        if self.is_triangle() && !self.square {
            facts.push(format!("M <= {terms}"));
        }
        if self.is_of_tiles() {
            facts.push(format!("{rows} <= {} * T", self.tile()[1]));
        }
        if let Heads::Grouped(n) = self.heads {
            facts.push(format!("H <= {n} * G"));
        }
        if facts.is_empty() { writeln!(f, " {{") } else { writeln!(f, " where {} {{", facts.join(", ")) }
    }

    fn equations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (h, range, j) = (self.batch(), self.range(), self.axis_of_terms());
        let (q, k, v) = (self.tensors()[0], self.element(1, "d"), self.element(2, "e"));
        let by_warps = self.engine == Engine::MmaSync;
        if by_warps {
            let own = if self.heads == Heads::One { "" } else { "h, " };
            writeln!(f, "    fq[{own}i, d] = {q}[{h}i, d];")?;
            writeln!(f, "    fk[{own}{j}, d] = {k};")?;
            writeln!(f, "    fv[{own}e, {j}] = {v};")?;
            writeln!(f, "    s[{h}i, {j}] = dot(|d| fq[{h}i, d] * fk[{h}j, d]);")?;
        } else {
            writeln!(f, "    s[{h}i, {j}] = dot(|d| {q}[{h}i, d] * {k});")?;
        }
        let own = format!("x[{h}i, j]");
        let equation = match self.scores {
            Scores::Plain | Scores::Inline => None,
            Scores::Scaled => Some(format!("0.5 * s[{h}i, j]")),
            Scores::Biased => Some(format!("s[{h}i, j] + b[{h}i, j]")),
            Scores::OfTerms => Some(format!("s[{h}i, j] + b[j]")),
            Scores::Masked => {
                let none = if self.min { "inf" } else { "-inf" };
                Some(format!("if j <= i + 3 {{ s[{h}i, j] }} else {{ {none} }}"))
            }
        };
        if let Some(value) = &equation {
            writeln!(f, "    x[{h}i, {j}] = {value};")?;
        }
        let score = match self.scores {
            Scores::Plain => format!("s[{h}i, j]"),
            Scores::Inline => format!("s[{h}i, j] * 2.0"),
            _ => own,
        };
        writeln!(f, "    m[{h}i] = {}(|j{range}| {score});", if self.min { "min" } else { "max" })?;
        let difference = match self.min {
            true => format!("m[{h}i] - {score}"),
            false => format!("{score} - m[{h}i]"),
        };
        let argument = match (self.factor, self.min) {
            (None, _) => difference,
            (Some(factor), false) if self.fused => format!("fma({factor}, {score}, -{factor} * m[{h}i])"),
            (Some(factor), true) if self.fused => format!("fma(-{factor}, {score}, {factor} * m[{h}i])"),
            (Some(factor), _) => format!("{factor} * ({difference})"),
        };
        writeln!(f, "    p[{h}i, {j}] = {}({argument});", self.function)?;
        let rounded = match self.multiple {
            Some(multiple) => format!("({multiple} * p[{h}i, j])"),
            None => format!("p[{h}i, j]"),
        };
        writeln!(f, "    pb[{h}i, {j}] = {rounded} as {};", self.ty.name())?;
        for sum in &self.sums {
            writeln!(f, "    {}[{h}i] = online sum(|j{range}| {});", sum.name(), sum.term(h, &score))?;
        }
        let value = if by_warps { format!("fv[{h}e, j]") } else { v };
        writeln!(f, "    a[{h}i, e] = online dot(|j{range}| pb[{h}i, j] * {value});")?;
        let product = format!("a[{h}i, e]");
        let sums: Vec<String> = self.sums.iter().map(|sum| format!("{}[{h}i]", sum.name())).collect();
        let all = sums.join(" + ");
        let output = match (self.reader, &sums[..]) {
            (Reader::Quotient, [first]) => format!("{product} / {first}"),
            (Reader::Quotient, [first, rest @ ..]) => format!("{product} / {first} + {}", rest.join(" + ")),
            (Reader::All, [_, ..]) => format!("{product} + ({all} + m[{h}i])"),
            (Reader::Extreme, _) => format!("{product} + m[{h}i]"),
            _ => product,
        };
        let narrow = if self.narrow { format!(" as {}", self.ty.name()) } else { String::new() };
        writeln!(f, "    y[{h}i, e] = ({output}){narrow};")?;
        if self.statistics {
            let sum = if sums.is_empty() { String::new() } else { format!(" + log({all})") };
            writeln!(f, "    z[{h}i] = m[{h}i]{sum};")?;
        }
        Ok(())
    }

    fn schedules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engine, unit, [own, tile]) = (self.engine.word(), self.engine.unit(), self.tile());
        let by = if self.roles.is_some() { " by math" } else { "" };
        let h = self.batch();
        let several = self.units > 1;
        let (cut, w, i) = match several {
            true => (format!("split i by {own} -> w, i1; bind w: {unit}; "), "w, ", "i1"),
            false => (String::new(), "", "i"),
        };
        let rows = match several {
            true => format!("split i by {tile} -> it, i2; split i2 by {own} -> w, i1; bind w: {unit};"),
            false => format!("split i by {tile} -> it, i1;"),
        };
        // What shares the blocks of another output leaves their order to it.
        let order = match (self.descending, self.heads) {
            (false, _) => "",
            (true, Heads::One) => " raster(it: descending)",
            (true, _) => " raster(h: 2, it: descending)",
        };
        let ordered = format!("{rows} bind {h}it: grid{order};");
        let rows = format!("{rows} bind {h}it: grid;");
        writeln!(
            f,
            "    schedule y{by} {{ {ordered} reorder {h}it, {w}i1, e; fragment (i1, e) by {engine}; vectorize e_p; }}"
        )?;
        if self.statistics {
            writeln!(f, "    schedule z at y.it{by} {{ {rows} reorder {h}it, {w}i1; fragment (i1) by {engine}; }}")?;
        }
        let blocks = match self.again {
            Some(n) => format!("split j by {} -> jo, j1; split jo by {n} -> jp, jq; reorder jp, jq, ", self.block),
            None => format!("split j by {} -> jo, j1; reorder jo, ", self.block),
        };
        let mut sums: Vec<&str> = self.sums.iter().map(|sum| sum.name()).collect();
        sums.insert(self.before.min(sums.len()), "a");
        let over = self.loop_of_blocks();
        writeln!(
            f,
            "    schedule m in registers at y.it{by} {{ {cut}{blocks}{w}{i}, j1; {} online m -> {} over {over}; }}",
            match self.is_eight() {
                true => format!("split j1 by 2 -> jc, jb; unroll jb; fragment ({i}, jc) by {engine};"),
                false => format!("fragment ({i}, j1) by {engine};"),
            },
            sums.join(", ")
        )?;
        let at = format!("at m.{over}{by}");
        let steps = |columns: &str, terms: &str| match self.engine {
            Engine::Wgmma => format!("mma ({i}, {columns}, {terms}) by wgmma;"),
            Engine::MmaSync => format!(
                "split {terms} by 16 -> {terms}k, {terms}i; reorder {terms}k, {w}{i}, {columns}, {terms}i; \
                 unroll {terms}k; mma ({i}, {columns}, {terms}i) by mma_sync;"
            ),
        };
        let mut product = steps("e", "j");
        if self.is_behind() {
            product = product.replace("by wgmma", "by wgmma inflight(1)");
        }
        writeln!(f, "    schedule a in registers {at} {{ {cut}{product} }}")?;
        let has_equation = !matches!(self.scores, Scores::Plain | Scores::Inline);
        let held = [("x", self.held[0] && has_equation), ("p", self.held[1]), ("pb", self.held[2])];
        for (name, _) in held.iter().filter(|held| held.1) {
            let dealt = match self.is_eight() {
                true => format!("split j by 2 -> jc, jb; fragment ({i}, jc) by {engine};"),
                false => format!("fragment ({i}, j) by {engine};"),
            };
            writeln!(f, "    schedule {name} in registers {at} {{ {cut}{dealt} }}")?;
        }
        let scores = match self.is_eight() {
            true => {
                format!("split j by 2 -> jc, jb; reorder {w}{i}, jb, jc, d; merge jb, jc -> jn; {}", steps("jn", "d"))
            }
            false => steps("j", "d"),
        };
        writeln!(f, "    schedule s in registers {at} {{ {cut}{scores} }}")?;
        if self.engine == Engine::MmaSync {
            let per = if several { " per warp" } else { "" };
            for (name, rows, columns, place) in
                [("fq", "i", "d", "s.dk"), ("fk", "j", "d", "s.dk"), ("fv", "e", "j", "a.jk")]
            {
                writeln!(
                    f,
                    "    schedule {name} in registers{per} at {place}{by} {{ fragment ({rows}, {columns}) by mma_sync; }}"
                )?;
            }
        }
        (0..if self.same { 2 } else { 3 }).try_for_each(|n| writeln!(f, "    {}", self.copy(n)))
    }

    fn launch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        if self.persistent {
            items.push("persistent".to_owned());
        }
        if let Some(roles) = self.roles {
            let registers = |n: usize| match (roles.registers, n) {
                (false, _) => "",
                (true, 0) => " regs(40)",
                (true, _) => " regs(232)",
            };
            let load = match roles.load {
                4 => "warpgroup".to_owned(),
                1 => "warp".to_owned(),
                n => format!("{n} warp"),
            };
            let (count, turns) = if roles.alternate { (2, " alternate") } else { (self.units, "") };
            let load = format!("load: {load}{}", registers(0));
            let math = format!("math: {count} {}{turns}{}", self.engine.unit(), registers(1));
            items.push(match roles.first {
                true => format!("roles {{ {load}, {math} }}"),
                false => format!("roles {{ {math}, {load} }}"),
            });
        }
        if items.is_empty() { Ok(()) } else { writeln!(f, "    launch {};", items.join(", ")) }
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature(f)?;
        self.equations(f)?;
        self.launch(f)?;
        self.schedules(f)?;
        writeln!(f, "}}")
    }
}
