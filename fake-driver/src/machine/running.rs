//! The execution of what streams hold: which stream is next, and what an operation does.

use tilewright_emulator::{Arg, Kind, Options};

use super::{Fill, ILLEGAL_ADDRESS, LAUNCH_FAILED, Machine, Node, Op, Order, SUCCESS, Status, Work, abort};
use crate::api::{copy_from_host, copy_to_host};

impl Machine {
    pub(super) fn push(&mut self, stream: u64, context: u64, op: Op) {
        let queue = self.stream(stream, context);
        if let Some(nodes) = &mut queue.capture {
            let node = match op {
                Op::Launch(work) => Node::Launch(work),
                Op::Fill(fill) => Node::Fill(fill),
                _ => abort("something else than a launch or a fill is captured"),
            };
            let after = nodes.len().checked_sub(1).into_iter().collect();
            return nodes.push((node, after));
        }
        queue.queue.push_back(op);
        match self.order {
            Order::Late => {}
            Order::Early => self.drain(),
            Order::Seed => {
                for _ in 0..self.draw(3) {
                    let ready = self.ready();
                    if !ready.is_empty() {
                        let stream = ready[self.draw(ready.len())];
                        self.step(stream);
                    }
                }
            }
        }
    }

    /// Streams whose next operation can run.
    fn ready(&self) -> Vec<u64> {
        let can = |op: &Op| !matches!(op, Op::Wait(recording) if !self.recorded.contains(recording));
        self.streams.iter().filter(|(_, s)| s.queue.front().is_some_and(can)).map(|(k, _)| *k).collect()
    }

    /// Runs whatever can run.
    fn drain(&mut self) {
        while let Some(&stream) = self.ready().first() {
            self.step(stream);
        }
    }

    pub(super) fn until_empty(&mut self, stream: u64) {
        while self.streams.get(&stream).is_some_and(|s| !s.queue.is_empty()) {
            self.advance(stream);
        }
    }

    pub(super) fn until_recorded(&mut self, recording: u64) {
        while !self.recorded.contains(&recording) {
            self.advance(self.recorder(recording));
        }
    }

    /// The stream that will record.
    fn recorder(&self, recording: u64) -> u64 {
        let records = |op: &Op| matches!(op, Op::Record(r) if *r == recording);
        let found = self.streams.iter().find(|(_, s)| s.queue.iter().any(records));
        found.map_or_else(|| abort("work waits for an event that nothing records"), |(k, _)| *k)
    }

    /// One operation towards the end of a stream; with a seed, perhaps of another stream.
    fn advance(&mut self, mut stream: u64) {
        if self.order == Order::Seed {
            let ready = self.ready();
            if ready.is_empty() {
                abort("deadlock: every stream waits for an event");
            }
            stream = ready[self.draw(ready.len())];
        } else {
            let mut hops = 0;
            while let Some(Op::Wait(recording)) = self.streams.get(&stream).and_then(|s| s.queue.front())
                && !self.recorded.contains(recording)
            {
                stream = self.recorder(*recording);
                hops += 1;
                if hops > self.streams.len() {
                    abort("deadlock: streams wait for each other's events");
                }
            }
        }
        self.step(stream);
    }

    fn step(&mut self, stream: u64) {
        let Some(op) = self.streams.get_mut(&stream).and_then(|s| s.queue.pop_front()) else { return };
        // After a fault nothing runs, but what waits is let go.
        let runs = self.failed == SUCCESS;
        match op {
            Op::Record(recording) => {
                self.recorded.insert(recording);
            }
            Op::Wait(_) => {}
            _ if !runs => {}
            Op::Launch(work) => self.run(&work),
            Op::Graph(nodes) => self.run_graph(&nodes),
            Op::FromHost(device, host, bytes) => {
                self.present(device, "a copy");
                self.count_copy(host, bytes);
                let copied = self.memory.write(device, &copy_from_host(host, bytes));
                self.fault(copied.is_err(), ILLEGAL_ADDRESS);
            }
            Op::ToHost(host, device, bytes) => {
                self.present(device, "a copy");
                self.count_copy(host, bytes);
                let mut data = vec![0; bytes];
                let copied = self.memory.read(device, &mut data);
                self.fault(copied.is_err(), ILLEGAL_ADDRESS);
                copy_to_host(host, &data);
            }
            Op::Between(target, source, bytes) => {
                self.present(target, "a copy");
                self.present(source, "a copy");
                let mut data = vec![0; bytes];
                let copied = self.memory.read(source, &mut data).and_then(|()| self.memory.write(target, &data));
                self.fault(copied.is_err(), ILLEGAL_ADDRESS);
            }
            Op::Fill(fill) => self.run_fill(&fill),
            Op::Allocate(address) => {
                self.future.remove(&address);
            }
            Op::Free(address) => {
                self.present(address, "a release");
                if self.memory.free(address).is_err() {
                    abort("memory is freed twice");
                }
            }
        }
    }

    fn fault(&mut self, happened: bool, status: Status) {
        if happened && self.failed == SUCCESS {
            self.failed = status;
        }
    }

    /// Stream-ordered memory is there only after its allocation was executed.
    fn present(&self, address: u64, what: &str) {
        let before = self.future.range(..=address).next_back();
        if before.is_some_and(|(base, bytes)| address < base + bytes) {
            abort(&format!("{what} of memory before its allocation in stream order"));
        }
    }

    fn run(&mut self, work: &Work) {
        for Arg(bytes) in &work.launch.args {
            if let Ok(address) = <[u8; 8]>::try_from(&**bytes) {
                self.present(u64::from_le_bytes(address), "a launch");
            }
        }
        match work.program.launch(&work.launch, &self.memory, &Options::default()) {
            Ok(report) => {
                if let Some(finding) = report.findings.iter().find(|f| f.kind.is_failure()) {
                    eprintln!("fake driver: {finding}");
                    let outside = matches!(finding.kind, Kind::OutOfBounds | Kind::ReadOnlyWrite | Kind::Misaligned);
                    self.fault(true, if outside { ILLEGAL_ADDRESS } else { LAUNCH_FAILED });
                }
            }
            Err(error) => {
                eprintln!("fake driver: {error}");
                self.fault(true, LAUNCH_FAILED);
            }
        }
    }

    fn run_fill(&mut self, fill: &Fill) {
        self.present(fill.address, "a fill");
        let row = fill.unit.repeat(fill.width as usize);
        let mut rows = (0..fill.height).map(|row| fill.address + row * fill.pitch);
        let filled = rows.try_for_each(|address| self.memory.write(address, &row));
        self.fault(filled.is_err(), ILLEGAL_ADDRESS);
    }

    /// Any order that the edges allow: the latest node first.
    fn run_graph(&mut self, nodes: &[(Node, Vec<usize>)]) {
        let mut done = vec![false; nodes.len()];
        for _ in 0..nodes.len() {
            let ready: Vec<usize> =
                (0..nodes.len()).filter(|&n| !done[n] && nodes[n].1.iter().all(|&before| done[before])).collect();
            let pick = if self.order == Order::Seed { self.draw(ready.len()) } else { ready.len() - 1 };
            let node = ready[pick];
            done[node] = true;
            match &nodes[node].0 {
                Node::Launch(work) => self.run(work),
                Node::Fill(fill) => self.run_fill(fill),
            }
        }
    }
}
