//! The instruction table, form by form: text round trips, and the assembler's agreement when there is one.

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use common::{instances, module_text};
use tilewright_ptx::{PtxVersion, Requirement, Target, load, parse};

/// Oldest version and target that current assemblers take.
const OLDEST: Requirement = Requirement { version: PtxVersion::new(6, 3), target: Target::sm(75) };

#[test]
fn every_form_round_trips() {
    for instance in instances() {
        let text = module_text("9.0", "sm_90a", &instance.text);
        let module = parse(&text).unwrap_or_else(|error| panic!("`{}`: {error}", instance.text));
        let printed = module.to_string();
        assert!(printed.contains(&instance.text), "`{}` is not in\n{printed}", instance.text);
        let again = parse(&printed).unwrap_or_else(|error| panic!("printed `{}`: {error}", instance.text));
        assert_eq!(again.to_string(), printed, "printing `{}` is no fixed point", instance.text);
    }
}

#[test]
fn every_form_verifies_where_its_needs_are_met_and_nowhere_below() {
    for instance in instances().iter().filter(|instance| instance.alone) {
        let need = instance.need.and(OLDEST);
        let version = need.version.max(need.target.introduced());
        let at = |version: PtxVersion, target: Target| {
            load(&module_text(&version.to_string(), &target.to_string(), &instance.text))
        };
        at(version, need.target).unwrap_or_else(|error| panic!("`{}`: {error}", instance.text));
        if instance.need.version.minor > 0 && instance.need.version > OLDEST.version {
            let below = PtxVersion::new(version.major, instance.need.version.minor - 1);
            let below = PtxVersion { major: instance.need.version.major, ..below };
            assert!(at(below, need.target).is_err(), "`{}` passes at PTX {below}", instance.text);
        }
        if instance.need.target > OLDEST.target {
            assert!(at(version, Target::sm(75)).is_err(), "`{}` passes on sm_75", instance.text);
        }
    }
}

/// Assembles every instance at exactly the version and target that the table gives, with the ptxas named by `PTXAS`.
#[test]
fn assembler_accepts_every_form() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("skipped: set PTXAS to the path of ptxas");
        return;
    };
    let mut groups: BTreeMap<(PtxVersion, Target), Vec<String>> = BTreeMap::new();
    for instance in instances().into_iter().filter(|instance| instance.alone) {
        let need = instance.need.and(OLDEST);
        let version = need.version.max(need.target.introduced());
        groups.entry((version, need.target)).or_default().push(instance.text);
    }
    let folder = std::env::temp_dir().join(format!("tilewright-ptx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut refused = Vec::new();
    for ((version, target), lines) in &groups {
        // Every instruction in a branch of its own would be kinder to the assembler's optimiser; we only want its front end.
        for chunk in lines.chunks(1000) {
            let head = module_text(&version.to_string(), &target.to_string(), &chunk.join("\n"));
            let first = head.lines().position(|line| line == chunk[0]).unwrap() + 1;
            let path = folder.join("forms.ptx");
            std::fs::write(&path, head).unwrap();
            let run = Command::new(&ptxas)
                .args(["-O0", "--opt-level", "0", "-arch", &target.to_string(), "-o"])
                .arg(folder.join("forms.cubin"))
                .arg(&path)
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
            for message in stderr.lines().filter(|line| line.contains("error") || line.contains("fatal")) {
                let line = message
                    .split_once("line ")
                    .and_then(|(_, rest)| rest.split(';').next())
                    .and_then(|number| number.trim().parse::<usize>().ok());
                let text = line.and_then(|line| chunk.get(line.wrapping_sub(first)));
                match text {
                    Some(text) => refused.push(format!("{version} {target}: `{text}`: {message}")),
                    None => refused.push(format!("{version} {target}: {message}")),
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}
