//! Where the source of the compiler can be changed, and how.
//!
//! | operator | changes |
//! | --- | --- |
//! | compare | `==` to `!=`, `<` to `<=`, `>` to `>=`, and back |
//! | arithmetic | `+` to `-`, `*` to `+`, `/` to `*`, `%` to `/`, `<<` to `>>`, and back; the same in assignments |
//! | predicate | one side of `&&` or <code>&#124;&#124;</code> dropped; `!x` to `x`; `matches!` to its opposite; `true` to `false` |
//! | condition | a condition, a guard of an arm, the body of a predicate's closure: always, never |
//! | statement | a call, an assignment, `continue`, `break` or `return` left out |
//! | literal | 0 to 1, n to n + 1 |
//! | variant | a variant without fields to the next one of its `enum` |
//! | method | `min` to `max`, `any` to `all`, `first` to `last`, … and back |
//! | operands | two neighbours of a call's arguments exchanged |
//! | option | `Some(x)` to `None` |
//! | iteration | the first one of a `for` loop skipped |
//! | result | a function that returns at once: `true`, `false`, 0, `None`, nothing |

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// How a site is written with its alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An expression: one of its alternatives in its place.
    Expression,
    /// A statement, which is left out.
    Statement,
    /// A point at the start of a body, where an alternative is inserted.
    Start,
    /// What a loop iterates over, without its first item.
    Iteration,
}

/// A place, and what may stand there instead.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its bytes in the file.
    pub bytes: Range<usize>,
    /// Its line in the file, from 1.
    pub line: usize,
    /// How alternatives are written.
    pub form: Form,
    /// What stands there: the text, or the name of the function that starts.
    pub before: String,
    /// Operators, with the texts that they give.
    pub alternatives: Vec<(&'static str, String)>,
}

/// Variants without fields: the next one of each `enum`, by names.
pub type Variants = BTreeMap<(String, String), String>;

/// Adds the variants that a file defines.
pub fn variants(file: &syn::File, found: &mut Variants) {
    struct Enums<'v>(&'v mut Variants);
    impl<'ast> Visit<'ast> for Enums<'_> {
        fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
            let units: Vec<String> = (item.variants.iter())
                .filter(|v| matches!(v.fields, syn::Fields::Unit))
                .map(|v| v.ident.to_string())
                .collect();
            for (n, unit) in units.iter().enumerate().filter(|_| units.len() > 1) {
                let next = units[(n + 1) % units.len()].clone();
                self.0.insert((item.ident.to_string(), unit.clone()), next);
            }
        }
    }
    Enums(found).visit_file(file);
}

/// All sites of a file, outer ones before those inside them.
pub fn sites(text: &str, file: &syn::File, variants: &Variants) -> Vec<Site> {
    let mut finder = Finder { text, variants, sites: Vec::new() };
    finder.visit_file(file);
    let mut sites = finder.sites;
    sites.retain(|site| !site.alternatives.is_empty());
    // Stable, so that of sites at one place the one that was found first is outside.
    sites.sort_by_key(|site| (site.bytes.start, site.form != Form::Start, std::cmp::Reverse(site.bytes.end)));
    sites
}

struct Finder<'a> {
    text: &'a str,
    variants: &'a Variants,
    sites: Vec<Site>,
}

/// Methods and what stands for each.
const METHODS: [(&str, &str); 14] = [
    ("min", "max"),
    ("max", "min"),
    ("any", "all"),
    ("all", "any"),
    ("first", "last"),
    ("last", "first"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
    ("div_euclid", "rem_euclid"),
    ("rem_euclid", "div_euclid"),
    ("max_by_key", "min_by_key"),
    ("min_by_key", "max_by_key"),
];

/// Methods whose closure is a predicate.
const PREDICATES: [&str; 9] =
    ["filter", "any", "all", "position", "find", "take_while", "skip_while", "retain", "is_some_and"];

fn operator(op: &syn::BinOp) -> Option<(&'static str, &'static str)> {
    use syn::BinOp;
    Some(match op {
        BinOp::Eq(_) => ("compare", "!="),
        BinOp::Ne(_) => ("compare", "=="),
        BinOp::Lt(_) => ("compare", "<="),
        BinOp::Le(_) => ("compare", "<"),
        BinOp::Gt(_) => ("compare", ">="),
        BinOp::Ge(_) => ("compare", ">"),
        BinOp::Add(_) => ("arithmetic", "-"),
        BinOp::Sub(_) | BinOp::Mul(_) => ("arithmetic", "+"),
        BinOp::Div(_) => ("arithmetic", "*"),
        BinOp::Rem(_) => ("arithmetic", "/"),
        BinOp::Shl(_) => ("arithmetic", ">>"),
        BinOp::Shr(_) => ("arithmetic", "<<"),
        BinOp::BitAnd(_) => ("arithmetic", "|"),
        BinOp::BitOr(_) => ("arithmetic", "&"),
        BinOp::AddAssign(_) => ("arithmetic", "-="),
        BinOp::SubAssign(_) | BinOp::MulAssign(_) => ("arithmetic", "+="),
        BinOp::DivAssign(_) => ("arithmetic", "*="),
        _ => return None,
    })
}

/// Whether an expression binds names, by a `let` of its own level.
fn binds(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(b) => binds(&b.left) || binds(&b.right),
        syn::Expr::Paren(p) => binds(&p.expr),
        _ => false,
    }
}

impl Finder<'_> {
    fn text_of(&self, span: Span) -> &str {
        self.text.get(span.byte_range()).unwrap_or_default()
    }

    fn site(&mut self, span: Span, form: Form, alternatives: Vec<(&'static str, String)>) {
        let (bytes, before) = (span.byte_range(), self.text_of(span).to_owned());
        self.sites.push(Site { bytes, line: span.start().line, form, before, alternatives });
    }

    fn expression(&mut self, span: Span, operator: &'static str, text: String) {
        self.site(span, Form::Expression, vec![(operator, text)]);
    }

    /// A condition, or the parts of a chain that bind nothing.
    fn condition(&mut self, condition: &syn::Expr, always: bool) {
        match condition {
            syn::Expr::Let(_) => {}
            syn::Expr::Binary(b) if binds(condition) => {
                self.condition(&b.left, true);
                self.condition(&b.right, true);
            }
            _ => {
                let mut both = vec![("condition", "false".to_owned())];
                if always {
                    both.push(("condition", "true".to_owned()));
                }
                self.site(condition.span(), Form::Expression, both);
            }
        }
    }

    /// Neighbouring arguments exchanged.
    fn exchanged(&mut self, whole: Span, arguments: &syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>) {
        let spans: Vec<Range<usize>> = arguments.iter().map(|a| a.span().byte_range()).collect();
        let range = whole.byte_range();
        let mut alternatives = Vec::new();
        for pair in spans.windows(2) {
            let [one, two] = pair else { continue };
            let (first, second) = (&self.text[one.clone()], &self.text[two.clone()]);
            if first == second || first.starts_with('|') || second.starts_with('|') {
                continue;
            }
            let (before, between, after) =
                (&self.text[range.start..one.start], &self.text[one.end..two.start], &self.text[two.end..range.end]);
            alternatives.push(("operands", format!("{before}{second}{between}{first}{after}")));
        }
        self.site(whole, Form::Expression, alternatives);
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let texts: &[&str] = match &signature.output {
            syn::ReturnType::Default => &["return;"],
            syn::ReturnType::Type(_, ty) => match self.text_of(ty.span()) {
                "bool" => &["return true;", "return false;"],
                "i64" | "i128" | "u32" | "u64" | "usize" => &["return 0;"],
                name if name.starts_with("Option<") => &["return None;"],
                name if name.starts_with("Vec<") => &["return Vec::new();"],
                _ => return,
            },
        };
        let Some(first) = block.stmts.first() else { return };
        let at = first.span().byte_range().start;
        let alternatives = texts.iter().map(|t| ("result", (*t).to_owned())).collect();
        let (line, before) = (first.span().start().line, format!("fn {}", signature.ident));
        self.sites.push(Site { bytes: at..at, line, form: Form::Start, before, alternatives });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // What is not evaluated when the compiler runs: constants, types, patterns, attributes, tests.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_item_macro(&mut self, _: &'ast syn::ItemMacro) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = item.attrs.iter().any(|a| self.text_of(a.span()).contains("cfg(test)"));
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Messages: the texts of refusals and of listings are not what this is about.
        let of = item.trait_.as_ref().and_then(|t| t.1.segments.last()).map(|s| s.ident.to_string());
        if !matches!(of.as_deref(), Some("Display" | "Debug")) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_test = item.attrs.iter().any(|a| self.text_of(a.span()).contains("test"));
        if item.sig.constness.is_none() && !is_test {
            self.body(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            self.body(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let (left, right) = (expr.left.span(), expr.right.span());
        let whole = left.byte_range().start..right.byte_range().end;
        let (l, r) = (self.text_of(left).to_owned(), self.text_of(right).to_owned());
        let is_chain = binds(&expr.left) || binds(&expr.right);
        let alternatives = match &expr.op {
            syn::BinOp::And(_) | syn::BinOp::Or(_) if !is_chain => {
                vec![("predicate", format!("({l})")), ("predicate", format!("({r})"))]
            }
            op => operator(op).map(|(name, op)| (name, format!("{l} {op} {r}"))).into_iter().collect(),
        };
        let (line, before) = (left.start().line, self.text[whole.clone()].to_owned());
        self.sites.push(Site { bytes: whole, line, form: Form::Expression, before, alternatives });
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let inner = self.text_of(expr.expr.span()).to_owned();
        match expr.op {
            syn::UnOp::Not(_) => self.expression(expr.span(), "predicate", inner),
            syn::UnOp::Neg(_) if !matches!(&*expr.expr, syn::Expr::Lit(_)) => {
                self.expression(expr.span(), "arithmetic", inner);
            }
            _ => {}
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_lit(&mut self, expr: &'ast syn::ExprLit) {
        match &expr.lit {
            syn::Lit::Int(int) => {
                if let Ok(value) = int.base10_parse::<u64>()
                    && let Some(next) = value.checked_add(1)
                {
                    self.expression(expr.span(), "literal", format!("{next}{}", int.suffix()));
                }
            }
            syn::Lit::Bool(bool) => self.expression(expr.span(), "predicate", (!bool.value).to_string()),
            _ => {}
        }
    }

    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        let names: Vec<String> = expr.path.segments.iter().rev().take(2).map(|s| s.ident.to_string()).collect();
        if let [variant, of] = &names[..]
            && let Some(next) = self.variants.get(&(of.clone(), variant.clone()))
        {
            let text = self.text_of(expr.span());
            let changed = format!("{}{next}", &text[..text.len() - variant.len()]);
            self.expression(expr.span(), "variant", changed);
        }
    }

    fn visit_expr_call(&mut self, expr: &'ast syn::ExprCall) {
        if self.text_of(expr.func.span()) == "Some" {
            self.expression(expr.span(), "option", "None".to_owned());
        }
        self.exchanged(expr.span(), &expr.args);
        // Not the path that is called: its variants have fields.
        if !matches!(&*expr.func, syn::Expr::Path(_)) {
            self.visit_expr(&expr.func);
        }
        expr.args.iter().for_each(|a| self.visit_expr(a));
    }

    fn visit_expr_method_call(&mut self, expr: &'ast syn::ExprMethodCall) {
        let name = expr.method.to_string();
        if let Some((_, other)) = METHODS.iter().find(|m| m.0 == name) {
            let (whole, method) = (expr.span().byte_range(), expr.method.span().byte_range());
            let text = format!("{}{other}{}", &self.text[whole.start..method.start], &self.text[method.end..whole.end]);
            self.expression(expr.span(), "method", text);
        }
        self.exchanged(expr.span(), &expr.args);
        if PREDICATES.contains(&&*name)
            && let Some(syn::Expr::Closure(closure)) = expr.args.last()
        {
            self.condition(&closure.body, true);
        }
        visit::visit_expr_method_call(self, expr);
    }

    fn visit_expr_macro(&mut self, expr: &'ast syn::ExprMacro) {
        if expr.mac.path.is_ident("matches") {
            let text = format!("!{}", self.text_of(expr.span()));
            self.expression(expr.span(), "predicate", text);
        }
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond, true);
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.condition(&expr.cond, false);
        visit::visit_expr_while(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard, true);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast syn::ExprForLoop) {
        self.site(expr.expr.span(), Form::Iteration, vec![("iteration", String::new())]);
        visit::visit_expr_for_loop(self, expr);
    }

    fn visit_stmt(&mut self, stmt: &'ast syn::Stmt) {
        use syn::Expr;
        if let syn::Stmt::Expr(expr, Some(_)) = stmt {
            let is_assignment = matches!(expr, Expr::Assign(_) | Expr::Binary(_));
            let is_call = matches!(expr, Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_));
            let leaves = matches!(expr, Expr::Continue(_) | Expr::Break(_) | Expr::Return(_));
            if is_assignment || is_call || leaves {
                self.site(stmt.span(), Form::Statement, vec![("statement", String::new())]);
            }
        }
        visit::visit_stmt(self, stmt);
    }
}
