//! Kernel data as Rust constants.
//!
//! A variant without fields is named by its debug text; everything else is written out field by field, against the
//! short names that the expansion imports: `E` element types, `a` algorithm, `i` info, `s` size, `t` tensor maps, `L`
//! Cow, `O` Option.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use tilewright_kernel::algorithm::{Algorithm, Axis, Component, Equation, FoldState, Index, Order, Run, Source, Value};
use tilewright_kernel::info::{
    Additions, Argument, Dim, DimKind, Entry, KernelInfo, Launch, MapDimension, MapInfo, Parameter, ParameterKind,
    Role, Solved, TensorParameter, Workspace,
};
use tilewright_kernel::size::{Constraint, Size, SizeOp};

/// An identifier that names a variant.
fn variant(value: &impl std::fmt::Debug) -> proc_macro2::Ident {
    proc_macro2::Ident::new(&format!("{value:?}"), proc_macro2::Span::call_site())
}

fn list<T>(items: &[T], each: impl Fn(&T) -> TokenStream) -> TokenStream {
    let items = items.iter().map(each);
    // A list whose elements have destructors is not promoted to a static on its own.
    quote!(L::Borrowed(const { &[#(#items),*] }))
}

fn text(value: &str) -> TokenStream {
    quote!(L::Borrowed(#value))
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(O::Some(#value)),
        None => quote!(O::None),
    }
}

fn u32s(items: &[u32]) -> TokenStream {
    list(items, |i| quote!(#i))
}

/// The `KernelInfo` as a reference to a static.
pub fn kernel_info(krate: &TokenStream, kernel: &KernelInfo) -> TokenStream {
    let name = text(&kernel.name);
    let dims = list(&kernel.dims, dim);
    let parameters = list(&kernel.parameters, parameter);
    let solved = list(&kernel.solved, |Solved { dim, value }| {
        let value = size(value);
        quote!(i::Solved { dim: #dim, value: #value })
    });
    let facts = list(&kernel.facts, constraint);
    let requirements = list(&kernel.requirements, constraint);
    let entries = list(&kernel.entries, |Entry { name, conditions, takes_maps, shared_bytes }| {
        let (name, conditions) = (text(name), list(conditions, constraint));
        quote!(i::Entry {
            name: #name, conditions: #conditions, takes_maps: #takes_maps, shared_bytes: #shared_bytes
        })
    });
    let maps = list(&kernel.maps, map);
    let workspace = list(&kernel.workspace, |Workspace { name, element, elements, zeroed }| {
        let (name, element, elements) = (text(name), variant(element), size(elements));
        quote!(i::Workspace { name: #name, element: E::#element, elements: #elements, zeroed: #zeroed })
    });
    let arguments = list(&kernel.arguments, |argument| match argument {
        Argument::Address(p) => quote!(i::Argument::Address(#p)),
        Argument::Scalar(p) => quote!(i::Argument::Scalar(#p)),
        Argument::Dim(d) => quote!(i::Argument::Dim(#d)),
        Argument::Workspace(w) => quote!(i::Argument::Workspace(#w)),
        Argument::Map(m) => quote!(i::Argument::Map(#m)),
    });
    let launch = {
        let (blocks, threads) = (size(&kernel.launch.blocks), kernel.launch.threads);
        let Launch { cluster, persistent, dependent, .. } = kernel.launch;
        quote!(i::Launch {
            blocks: #blocks,
            threads: #threads,
            cluster: #cluster,
            persistent: #persistent,
            dependent: #dependent,
        })
    };
    let ptx = {
        let p = &kernel.ptx;
        let (code, target) = (text(&p.text), text(&p.target));
        let pair = |(a, b): (u8, u8)| quote!((#a, #b));
        let (version, capability, driver) = (pair(p.version), pair(p.capability), pair(p.driver));
        let exact = p.exact_capability;
        quote!(i::Ptx {
            text: #code, version: #version, target: #target, capability: #capability, exact_capability: #exact, driver: #driver
        })
    };
    let algorithm = algorithm(&kernel.algorithm);
    let additions = list(&kernel.additions, |Additions { sum, most }| {
        let most = size(most);
        quote!(i::Additions { sum: #sum, most: #most })
    });
    let statements = list(&kernel.statements, |s| text(s));
    let explanation = text(&kernel.explanation);
    quote! {{
        #[allow(unused_imports)]
        use #krate::kernel::{
            ElementType as E,
            algorithm as a,
            info as i,
            size as s,
            tensor_map as t,
        };
        #[allow(unused_imports)]
        use ::core::option::Option as O;
        #[allow(unused_imports)]
        use ::std::borrow::Cow as L;
        static KERNEL: i::KernelInfo = i::KernelInfo {
            name: #name,
            dims: #dims,
            parameters: #parameters,
            solved: #solved,
            facts: #facts,
            requirements: #requirements,
            entries: #entries,
            maps: #maps,
            workspace: #workspace,
            arguments: #arguments,
            launch: #launch,
            ptx: #ptx,
            algorithm: #algorithm,
            statements: #statements,
            additions: #additions,
            explanation: #explanation,
        };
        &KERNEL
    }}
}

fn map(map: &MapInfo) -> TokenStream {
    let (name, parameter) = (text(&map.name), map.parameter);
    let (format, swizzle, promotion) = (variant(&map.format), variant(&map.swizzle), variant(&map.promotion));
    let dimensions = list(&map.dimensions, |MapDimension { size: extent, stride, box_size, element_stride }| {
        let (extent, stride) = (size(extent), size(stride));
        quote!(i::MapDimension {
            size: #extent, stride: #stride, box_size: #box_size, element_stride: #element_stride
        })
    });
    quote!(i::MapInfo {
        name: #name, parameter: #parameter, format: t::Format::#format, dimensions: #dimensions,
        swizzle: t::Swizzle::#swizzle, promotion: t::Promotion::#promotion
    })
}

fn dim(dim: &Dim) -> TokenStream {
    let name = text(&dim.name);
    let kind = match dim.kind {
        DimKind::Size => quote!(i::DimKind::Size),
        DimKind::Stride => quote!(i::DimKind::Stride),
    };
    quote!(i::Dim { name: #name, kind: #kind })
}

fn parameter(parameter: &Parameter) -> TokenStream {
    let (name, element) = (text(&parameter.name), variant(&parameter.element));
    let kind = match &parameter.kind {
        ParameterKind::Scalar => quote!(i::ParameterKind::Scalar),
        ParameterKind::Tensor(TensorParameter { role, shape, strides, alignment }) => {
            let role = match role {
                Role::Input => quote!(i::Role::Input),
                Role::Output => quote!(i::Role::Output),
                Role::InOut => quote!(i::Role::InOut),
            };
            let shape = list(shape, size);
            let strides = option(strides.as_ref().map(|s| list(s, size)));
            quote!(i::ParameterKind::Tensor(i::TensorParameter {
                role: #role, shape: #shape, strides: #strides, alignment: #alignment
            }))
        }
    };
    quote!(i::Parameter { name: #name, element: E::#element, kind: #kind })
}

fn size(size: &Size) -> TokenStream {
    let ops = size.ops.iter().map(|op| match op {
        SizeOp::Const(c) => {
            let c = Literal::i64_suffixed(*c);
            quote!(s::SizeOp::Const(#c))
        }
        SizeOp::Dim(d) => quote!(s::SizeOp::Dim(#d)),
        other => {
            let op = variant(other);
            quote!(s::SizeOp::#op)
        }
    });
    quote!(s::Size::new(&[#(#ops),*]))
}

fn constraint(constraint: &Constraint) -> TokenStream {
    let (lhs, rhs, text) = (size(&constraint.lhs), size(&constraint.rhs), text(&constraint.text));
    let relation = variant(&constraint.relation);
    quote!(s::Constraint { lhs: #lhs, relation: s::Relation::#relation, rhs: #rhs, text: #text })
}

fn run(run: Run) -> TokenStream {
    let Run { start, len } = run;
    quote!(a::Run { start: #start, len: #len })
}

fn algorithm(algorithm: &Algorithm) -> TokenStream {
    let indices = list(&algorithm.indices, index);
    let values = list(&algorithm.values, value);
    let types = list(&algorithm.types, |t| {
        let t = variant(t);
        quote!(E::#t)
    });
    let axes = list(&algorithm.axes, |Axis { name, lower, upper }| {
        let name = text(name);
        quote!(a::Axis { name: #name, lower: #lower, upper: #upper })
    });
    let (index_lists, axis_lists) = (u32s(&algorithm.index_lists), u32s(&algorithm.axis_lists));
    let folds = list(&algorithm.folds, |FoldState { init, variable, step, left, right, merge }| {
        let merge = option(merge.map(|m| quote!(#m)));
        quote!(a::FoldState {
            init: #init, variable: #variable, step: #step, left: #left, right: #right, merge: #merge
        })
    });
    let components = list(&algorithm.components, |Component { name, value, parameter }| {
        let (name, parameter) = (text(name), option(parameter.map(|p| quote!(#p))));
        quote!(a::Component { name: #name, value: #value, parameter: #parameter })
    });
    let equations = list(&algorithm.equations, |Equation { components, axes }| {
        let (components, axes) = (run(*components), run(*axes));
        quote!(a::Equation { components: #components, axes: #axes })
    });
    quote!(a::Algorithm {
        indices: #indices,
        values: #values,
        types: #types,
        axes: #axes,
        index_lists: #index_lists,
        axis_lists: #axis_lists,
        folds: #folds,
        components: #components,
        equations: #equations,
    })
}

fn index(index: &Index) -> TokenStream {
    match *index {
        Index::Literal(c) => {
            let c = Literal::i64_suffixed(c);
            quote!(a::Index::Literal(#c))
        }
        Index::Dim(d) => quote!(a::Index::Dim(#d)),
        Index::Axis(x) => quote!(a::Index::Axis(#x)),
        Index::Add(x, y) => quote!(a::Index::Add(#x, #y)),
        Index::Sub(x, y) => quote!(a::Index::Sub(#x, #y)),
        Index::Mul(x, y) => quote!(a::Index::Mul(#x, #y)),
        Index::Div(x, y) => quote!(a::Index::Div(#x, #y)),
        Index::Mod(x, y) => quote!(a::Index::Mod(#x, #y)),
        Index::Min(x, y) => quote!(a::Index::Min(#x, #y)),
        Index::Max(x, y) => quote!(a::Index::Max(#x, #y)),
        Index::Value(v) => quote!(a::Index::Value(#v)),
    }
}

fn value(value: &Value) -> TokenStream {
    match *value {
        Value::Literal(bits) => quote!(a::Value::Literal(#bits)),
        Value::Scalar(p) => quote!(a::Value::Scalar(#p)),
        Value::FromIndex(i) => quote!(a::Value::FromIndex(#i)),
        Value::CompareIndex(op, x, y) => {
            let op = variant(&op);
            quote!(a::Value::CompareIndex(a::Compare::#op, #x, #y))
        }
        Value::Unary(op, x) => {
            let op = variant(&op);
            quote!(a::Value::Unary(a::Unary::#op, #x))
        }
        Value::Binary(op, x, y) => {
            let op = variant(&op);
            quote!(a::Value::Binary(a::Binary::#op, #x, #y))
        }
        Value::Compare(op, x, y) => {
            let op = variant(&op);
            quote!(a::Value::Compare(a::Compare::#op, #x, #y))
        }
        Value::Fma(x, y, z) => quote!(a::Value::Fma(#x, #y, #z)),
        Value::Select(c, x, y) => quote!(a::Value::Select(#c, #x, #y)),
        Value::Cast(x) => quote!(a::Value::Cast(#x)),
        Value::Read { source, indices, or } => {
            let source = match source {
                Source::Parameter(p) => quote!(a::Source::Parameter(#p)),
                Source::Equation { equation, component } => {
                    quote!(a::Source::Equation { equation: #equation, component: #component })
                }
            };
            let (indices, or) = (run(indices), option(or.map(|v| quote!(#v))));
            quote!(a::Value::Read { source: #source, indices: #indices, or: #or })
        }
        Value::Reduce { op, order, axes, body } => {
            let (op, axes) = (variant(&op), run(axes));
            let order = match order {
                Order::Dot { operands, promote, online } => {
                    let ([left, right], promote) =
                        (operands.map(|o| variant(&o)), option(promote.map(|interval| quote!(#interval))));
                    quote!(Dot { operands: [E::#left, E::#right], promote: #promote, online: #online })
                }
                plain => variant(&plain).to_token_stream(),
            };
            quote!(a::Value::Reduce { op: a::Reduction::#op, order: a::Order::#order, axes: #axes, body: #body })
        }
        Value::Fold { axes, states } => {
            let (axes, states) = (run(axes), run(states));
            quote!(a::Value::Fold { axes: #axes, states: #states })
        }
        Value::Component { fold, component } => quote!(a::Value::Component { fold: #fold, component: #component }),
        Value::Variable(v) => quote!(a::Value::Variable(#v)),
        Value::Scatter { op, indices, term } => {
            let op = option(op.map(|op| {
                let op = variant(&op);
                quote!(a::Reduction::#op)
            }));
            let indices = run(indices);
            quote!(a::Value::Scatter { op: #op, indices: #indices, term: #term })
        }
    }
}
