//! Small arithmetic in tables of tests: `(o * 7) / 10`, `min(16, 20 - 16 * o)`; quotients and remainders are floored.

use std::fmt::Debug;

use crate::extent::Expr;

/// A parsed expression.
#[derive(Clone, Debug)]
pub enum Text {
    Number(i128),
    Name(String),
    Apply(char, Box<[Text; 2]>),
}

impl Text {
    /// Parses one expression.
    pub fn new(source: &str) -> Self {
        let mut tokens = tokens(source);
        let parsed = sum(&mut tokens);
        assert!(tokens.is_empty(), "left over in `{source}`: {tokens:?}");
        parsed
    }

    /// Its value, over anything that has this arithmetic.
    pub fn eval<V>(
        &self,
        name: &dyn Fn(&str) -> V,
        arithmetic: &dyn Fn(char, V, V) -> V,
        literal: &dyn Fn(i128) -> V,
    ) -> V {
        match self {
            Self::Number(n) => literal(*n),
            Self::Name(text) => name(text),
            Self::Apply(op, operands) => {
                let [a, b] = &**operands;
                arithmetic(*op, a.eval(name, arithmetic, literal), b.eval(name, arithmetic, literal))
            }
        }
    }

    /// Its value in numbers.
    pub fn number(&self, name: &dyn Fn(&str) -> i128) -> i128 {
        let apply = |op, a: i128, b: i128| match op {
            '+' => a + b,
            '-' => a - b,
            '*' => a * b,
            '/' => a.div_euclid(b),
            '%' => a.rem_euclid(b),
            'm' => a.min(b),
            _ => a.max(b),
        };
        self.eval(name, &apply, &|n| n)
    }

    /// As an expression.
    pub fn expr(&self, name: &dyn Fn(&str) -> Expr) -> Expr {
        let apply = |op, a: Expr, b: Expr| match op {
            '+' => a.add(&b),
            '-' => a.sub(&b),
            '*' => a.mul(&b),
            '/' => a.floor_div(&b),
            '%' => a.modulo(&b),
            'm' => a.minimum(&b),
            _ => a.maximum(&b),
        };
        self.eval(name, &apply, &Expr::constant)
    }
}

/// Tokens, the first one last.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut joins = false;
    for c in source.chars() {
        let is_word = c.is_ascii_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if joins && is_word => last.push(c),
            _ if c.is_whitespace() => {}
            _ => tokens.push(c.to_string()),
        }
        joins = is_word;
    }
    tokens.reverse();
    tokens
}

fn chain(tokens: &mut Vec<String>, ops: &str, next: fn(&mut Vec<String>) -> Text) -> Text {
    let mut left = next(tokens);
    while let Some(op) = tokens.last().and_then(|t| t.chars().next()).filter(|c| ops.contains(*c)) {
        tokens.pop();
        left = Text::Apply(op, Box::new([left, next(tokens)]));
    }
    left
}

fn sum(tokens: &mut Vec<String>) -> Text {
    chain(tokens, "+-", product)
}

fn product(tokens: &mut Vec<String>) -> Text {
    chain(tokens, "*/%", atom)
}

fn atom(tokens: &mut Vec<String>) -> Text {
    let token = tokens.pop().expect("an expression goes on");
    let close = |tokens: &mut Vec<String>| assert_eq!(tokens.pop().as_deref(), Some(")"));
    match token.as_str() {
        "-" => Text::Apply('-', Box::new([Text::Number(0), atom(tokens)])),
        "(" => {
            let inner = sum(tokens);
            close(tokens);
            inner
        }
        "min" | "max" => {
            tokens.pop();
            let a = sum(tokens);
            tokens.pop();
            let b = sum(tokens);
            close(tokens);
            Text::Apply(if token == "min" { 'm' } else { 'x' }, Box::new([a, b]))
        }
        _ => token.parse().map_or(Text::Name(token), Text::Number),
    }
}
