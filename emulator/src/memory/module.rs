//! The variables of modules: in global memory allocations of their own, at addresses that the text decides, and in
//! constant memory bytes. Both come into being with the first use of a program on a device, and keep their values from
//! launch to launch.

use std::sync::Arc;

use super::device::{Allocation, Memory};
use crate::decode::Global;
use crate::error::Error;

/// The variables of one program on one device.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub globals: Vec<Arc<Allocation>>,
    pub constants: Vec<u8>,
}

impl Memory {
    /// Calls `use_it` with the variables of the program with this number, which are made when they are asked for first.
    pub(crate) fn with_module<T>(
        &self,
        program: u64,
        globals: &[Global],
        constants: &[u8],
        use_it: impl FnOnce(&mut Module) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut table = self.table();
        if !table.modules.contains_key(&program) {
            let mut module = Module { globals: Vec::new(), constants: constants.to_vec() };
            let bytes: u64 = globals.iter().map(|global| global.bytes).sum();
            let refusal = Error::OutOfMemory { bytes, used: table.used, capacity: self.capacity() };
            let used = table.used.checked_add(bytes).filter(|used| *used <= self.capacity());
            let Some(used) = used else { return Err(refusal) };
            for global in globals {
                let made =
                    Allocation::new(global.address, global.bytes, &global.name).ok_or_else(|| refusal.clone())?;
                made.fill_with(0, global.bytes, |at| global.initial.get(at).copied().unwrap_or(0));
                module.globals.push(Arc::new(made));
            }
            table.used = used;
            table.modules.insert(program, module);
        }
        match table.modules.get_mut(&program) {
            Some(module) => use_it(module),
            None => Err(Error::NoSymbol { name: String::new(), known: Vec::new() }),
        }
    }
}
