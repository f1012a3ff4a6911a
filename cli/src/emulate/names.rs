//! Names that compilers have mangled, and the kernel that a part of one means.

use cpp_demangle::{DemangleOptions, Symbol};

/// A name as it was written in C++, with its parameters; other names as they are.
pub fn demangled(name: &str) -> String {
    plain(name, DemangleOptions::new())
}

/// Without parameters and return types.
fn short(name: &str) -> String {
    plain(name, DemangleOptions::new().no_params().no_return_type())
}

fn plain(name: &str, options: DemangleOptions) -> String {
    let Some(symbol) = name.starts_with("_Z").then(|| Symbol::new(name).ok()).flatten() else {
        return name.to_owned();
    };
    symbol.demangle_with_options(&options).unwrap_or_else(|_| name.to_owned())
}

/// The name that is meant by `wanted`: one that is equal to it, or else the only one whose demangled name without
/// parameters is equal to it, or else the only one that has it in its demangled name.
///
/// # Errors
/// That there is none, or which there are.
pub fn find<'n>(names: &[&'n str], wanted: &str) -> Result<&'n str, String> {
    if let Some(name) = names.iter().find(|name| **name == wanted) {
        return Ok(name);
    }
    let last = |name: &str| short(name).rsplit("::").next() == Some(wanted);
    let tests: [&dyn Fn(&str) -> bool; 3] =
        [&|name| short(name) == wanted, &last, &|name| demangled(name).contains(wanted) || name.contains(wanted)];
    for test in tests {
        let found: Vec<&str> = names.iter().copied().filter(|name| test(name)).collect();
        match found[..] {
            [] => {}
            [one] => return Ok(one),
            _ => return Err(format!("several kernels are meant by `{wanted}`: {}", listed(&found))),
        }
    }
    let known = if names.is_empty() { "none".to_owned() } else { listed(names) };
    Err(format!("there is no kernel `{wanted}` in the program; it has {known}"))
}

/// Names, as they are and as they were written.
pub fn listed(names: &[&str]) -> String {
    let one = |name: &&str| match demangled(name) {
        plain if plain == **name => format!("`{name}`"),
        plain => format!("`{name}` ({plain})"),
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_by_a_part_of_their_name() {
        let names = ["_Z5saxpyifPKfPf", "_ZN3app6reduceIfEEvPT_i", "_ZN3app6reduceIdEEvPT_i", "plain"];
        assert_eq!(demangled(names[0]), "saxpy(int, float, float const*, float*)");
        assert_eq!(find(&names, "saxpy"), Ok(names[0]));
        assert_eq!(find(&names, "plai"), Ok("plain"));
        assert_eq!(find(&names, "reduce<float>"), Ok(names[1]));
        assert_eq!(find(&names, "app::reduce<double>"), Ok(names[2]));
        assert!(
            find(&names, "reduce")
                .is_err_and(|error| error.contains("several kernels") && error.contains("reduce<float>"))
        );
        assert!(find(&names, "other").is_err_and(|error| error.contains("there is no kernel `other`")));
        // What only looks mangled is a name.
        assert_eq!(demangled("_Zno"), "_Zno");
    }
}
