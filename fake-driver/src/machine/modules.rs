//! Modules and their functions, launches with their parameters, and graphs of launches.

use std::collections::BTreeMap;

use tilewright_emulator::{Arg, Launch, Program};
use tilewright_kernel::cluster::{PORTABLE_CLUSTER, check_cluster};

use super::{
    Fill, Function, INVALID_CLUSTER_SIZE, INVALID_PTX, INVALID_VALUE, Machine, Module, NO_BINARY_FOR_GPU, Node, Nodes,
    Op, SHARED_DEFAULT, SHARED_MOST, SUCCESS, Status, UNSUPPORTED_PTX_VERSION, Work, abort,
};

impl Machine {
    /// Loads PTX text: the module, or the status with the assembler's log.
    pub(crate) fn load(&mut self, text: &str) -> Result<u64, (Status, String)> {
        let module = tilewright_ptx::load(text).map_err(|e| (INVALID_PTX, e.to_string()))?;
        let driver = module.version.minimum_driver().map_or(0, |v| v as i32);
        if driver > self.version {
            return Err((UNSUPPORTED_PTX_VERSION, format!("Unsupported .version {}", module.version)));
        }
        let needed: String = module.target.to_string().chars().filter(char::is_ascii_digit).collect();
        if needed.parse().unwrap_or(0) > self.capability {
            return Err((NO_BINARY_FOR_GPU, format!("target {} is newer than the device", module.target)));
        }
        let program = Program::parse(text).map_err(|e| (INVALID_PTX, e.to_string()))?;
        let mut entries = BTreeMap::new();
        for name in program.entries() {
            let Some(function) = module.function(name) else { continue };
            let bytes = function.params.iter().map(|p| p.bytes().unwrap_or(0) as usize).collect();
            entries.insert(name.to_owned(), bytes);
        }
        self.modules.push(Module { program, entries });
        Ok(self.modules.len() as u64)
    }

    pub(crate) fn function(&mut self, module: u64, name: &str) -> Option<u64> {
        let module = (module as usize).wrapping_sub(1);
        let known = self.modules.get(module).unwrap_or_else(|| abort("no such module"));
        known.entries.get(name)?;
        self.functions.push(Function { module, name: name.to_owned(), shared: SHARED_DEFAULT, any_cluster: false });
        Some(self.functions.len() as u64)
    }

    fn function_of(&mut self, function: u64) -> &mut Function {
        self.functions.get_mut((function as usize).wrapping_sub(1)).unwrap_or_else(|| abort("no such function"))
    }

    pub(crate) fn allow_shared(&mut self, function: u64, bytes: u32) -> Status {
        self.function_of(function).shared = bytes;
        if bytes > SHARED_MOST { INVALID_VALUE } else { SUCCESS }
    }

    pub(crate) fn allow_any_cluster(&mut self, function: u64, allow: bool) -> Status {
        self.function_of(function).any_cluster = allow;
        SUCCESS
    }

    /// A launch in clusters of this shape.
    pub(crate) fn in_clusters(&mut self, work: Work, cluster: [u32; 3]) -> Result<Work, Status> {
        let any = self.function_of(work.function).any_cluster;
        let blocks: u32 = cluster.iter().product();
        match check_cluster(work.launch.grid, cluster) {
            Ok(()) if self.capability >= 90 && (any || blocks <= PORTABLE_CLUSTER) => {
                Ok(Work { launch: Launch { cluster: Some(cluster), ..work.launch }, ..work })
            }
            _ => Err(INVALID_CLUSTER_SIZE),
        }
    }

    /// Bytes of each parameter.
    pub(crate) fn parameters(&mut self, function: u64) -> Vec<usize> {
        let Function { module, name, .. } = self.function_of(function);
        let (module, name) = (*module, name.clone());
        self.modules[module].entries.get(&name).cloned().unwrap_or_default()
    }

    /// A launch with its parameters, which the driver copies when it is called.
    pub(crate) fn work(
        &mut self,
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        args: Vec<Vec<u8>>,
    ) -> Result<Work, Status> {
        let Function { module, name, shared: most, .. } = self.function_of(function);
        let (module, entry, most) = (*module, name.clone(), *most);
        let threads = block.iter().product::<u32>();
        if grid.contains(&0) || threads == 0 || threads > 1024 || shared > most || grid[0] > i32::MAX as u32 {
            return Err(INVALID_VALUE);
        }
        let args = args.into_iter().map(Arg).collect();
        let launch = Launch { entry, grid, block, dynamic_shared: shared, args, ..Launch::default() };
        Ok(Work { function, program: self.modules[module].program.clone(), launch })
    }

    pub(crate) fn launch(&mut self, work: Work, stream: u64, context: u64) {
        self.push(stream, context, Op::Launch(work));
    }

    pub(crate) fn graph_create(&mut self) -> u64 {
        let handle = self.handle();
        self.graphs.insert(handle, Vec::new());
        handle
    }

    fn graph(&mut self, graph: u64) -> &mut Nodes {
        self.graphs.get_mut(&graph).unwrap_or_else(|| abort("no such graph"))
    }

    /// A launch becomes a node.
    pub(crate) fn graph_add(&mut self, graph: u64, work: Work, after: Vec<usize>) -> u64 {
        self.graph_add_node(graph, Node::Launch(work), after)
    }

    /// A fill becomes a node, unless a driver would not take it.
    pub(crate) fn graph_add_fill(&mut self, graph: u64, fill: Fill, after: Vec<usize>) -> Option<u64> {
        fill.is_possible().then(|| self.graph_add_node(graph, Node::Fill(fill), after))
    }

    /// A node is its position, counted from 1.
    fn graph_add_node(&mut self, graph: u64, node: Node, after: Vec<usize>) -> u64 {
        self.newest = graph;
        let nodes = self.graph(graph);
        if after.iter().any(|&n| n == 0 || n > nodes.len()) {
            abort("a node comes after one that is not in its graph");
        }
        nodes.push((node, after.iter().map(|n| n - 1).collect()));
        nodes.len() as u64
    }

    /// Gives a node of the graph that was added to last a cluster.
    pub(crate) fn node_cluster(&mut self, node: u64, cluster: [u32; 3]) -> Status {
        let graph = self.newest;
        let at = (node as usize).wrapping_sub(1);
        let Some(Node::Launch(work)) = self.graph(graph).get(at).map(|node| node.0.clone()) else {
            return INVALID_VALUE;
        };
        match self.in_clusters(work, cluster) {
            Ok(work) => {
                self.graph(graph)[at].0 = Node::Launch(work);
                SUCCESS
            }
            Err(status) => status,
        }
    }

    pub(crate) fn graph_instantiate(&mut self, graph: u64) -> u64 {
        let nodes = self.graph(graph).clone();
        let handle = self.handle();
        self.executables.insert(handle, nodes);
        handle
    }

    pub(crate) fn graph_destroy(&mut self, graph: u64) {
        self.graph(graph);
        self.graphs.remove(&graph);
    }

    pub(crate) fn executable_destroy(&mut self, executable: u64) {
        if self.executables.remove(&executable).is_none() {
            abort("no such executable graph");
        }
    }

    pub(crate) fn graph_launch(&mut self, executable: u64, stream: u64, context: u64) {
        let nodes = self.executables.get(&executable).unwrap_or_else(|| abort("no such executable graph")).clone();
        self.push(stream, context, Op::Graph(nodes));
    }
}
