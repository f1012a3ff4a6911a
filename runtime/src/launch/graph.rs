//! Several prepared launches as one.

use std::marker::PhantomData;
use std::sync::Arc;

#[cfg(any(feature = "cuda", test))]
use super::Access;
use super::{Prepared, Work};
use crate::device::{Device, DeviceInner, Stream};
use crate::error::{Error, Result};

/// Prepared launches that run together, in an order that keeps every result: a launch comes after the earlier ones that
/// write what it uses or use what it writes. On a GPU this is a CUDA graph, enqueued with one call, in which
/// independent launches may overlap; the emulator runs them one after the other.
pub struct Graph<'m> {
    device: Arc<DeviceInner>,
    works: Vec<Work>,
    /// Union of what the launches use.
    #[cfg(feature = "cuda")]
    accesses: Vec<Access>,
    #[cfg(feature = "cuda")]
    cuda: Option<crate::cuda::Graph>,
    memory: PhantomData<&'m ()>,
}

impl<'m> Graph<'m> {
    /// A graph of launches that were prepared for streams of `device`, in the order in which running them one by one
    /// gives the result.
    ///
    /// # Errors
    /// [`Error::Layout`] if a launch was prepared for another device; a failure of the driver.
    pub fn new(device: &Device, launches: impl IntoIterator<Item = Prepared<'m>>) -> Result<Self> {
        let mut works = Vec::new();
        for (position, launch) in launches.into_iter().enumerate() {
            if !launch.device().is(device.inner()) {
                let (found, graph) = (launch.device().name(), device.name());
                let reason = if found == graph {
                    format!("launch {position} was prepared for another {found} than the one of the graph")
                } else {
                    format!("launch {position} was prepared for {found}, the graph is for {graph}")
                };
                return Err(Error::Layout { operation: "Graph::new", reason });
            }
            if !launch.work.is_nothing() {
                works.push(launch.work);
            }
        }
        #[cfg(feature = "cuda")]
        let mut accesses: Vec<Access> = works.iter().flat_map(|w| w.accesses.iter().cloned()).collect();
        #[cfg(feature = "cuda")]
        Access::sort(&mut accesses);
        Ok(Self {
            #[cfg(feature = "cuda")]
            cuda: match &**device.inner() {
                DeviceInner::Cuda(context) if !works.is_empty() => {
                    Some(crate::cuda::Graph::new(context, &works, &dependences(&works))?)
                }
                _ => None,
            },
            device: Arc::clone(device.inner()),
            works,
            #[cfg(feature = "cuda")]
            accesses,
            memory: PhantomData,
        })
    }

    /// Runs the graph. On a GPU this returns when it is enqueued.
    ///
    /// # Errors
    /// [`Error::Layout`] if the stream is of another device; the failure of the device, or what the emulator found.
    pub fn run(&mut self, on: impl AsRef<Stream>) -> Result<()> {
        let stream = on.as_ref();
        if !stream.inner().device.is(&self.device) {
            let (graph, found) = (self.device.name(), stream.inner().device.name());
            let reason = if graph == found {
                format!("the stream is on another {found} than the one of the graph")
            } else {
                format!("the graph is for {graph}, the stream is on {found}")
            };
            return Err(Error::Layout { operation: "Graph::run", reason });
        }
        #[cfg(feature = "cuda")]
        if let Some(graph) = &mut self.cuda {
            return graph.run(&self.accesses, stream.inner());
        }
        self.works.iter().try_for_each(|work| work.run(stream))
    }
}

impl std::fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernels: Vec<&str> = self.works.iter().map(|w| &*w.kernel).collect();
        write!(f, "Graph({kernels:?} on {})", self.device.name())
    }
}

/// For each launch, the earlier ones that it must come after; those that follow from others are left out.
#[cfg(any(feature = "cuda", test))]
fn dependences(works: &[Work]) -> Vec<Vec<usize>> {
    let uses: Vec<&[Access]> = works.iter().map(|w| &*w.accesses).collect();
    edges(uses.len(), |i, j| uses[i].iter().any(|a| uses[j].iter().any(|b| a.conflicts(b))))
}

/// Transitive reduction of the order in which conflicting nodes keep their positions.
#[cfg(any(feature = "cuda", test))]
fn edges(nodes: usize, conflict: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(nodes);
    let mut all = Vec::with_capacity(nodes);
    for j in 0..nodes {
        let mut reached = vec![false; nodes];
        let mut direct = Vec::new();
        // Latest first: what a later predecessor already comes after needs no edge.
        for i in (0..j).rev() {
            if !reached[i] && conflict(i, j) {
                direct.push(i);
                reached[i] = true;
                for (r, b) in reached.iter_mut().zip(&before[i]) {
                    *r |= *b;
                }
            }
        }
        direct.reverse();
        before.push(reached);
        all.push(direct);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_keep_the_order_of_conflicts_and_no_more() {
        // 0 → 1 → 3, 0 → 2 → 3, and 0 ↔ 3, which follows.
        let conflicts = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)];
        let found = edges(5, |i, j| conflicts.contains(&(i, j)));
        assert_eq!(found, [vec![], vec![0], vec![0], vec![1, 2], vec![]]);
    }
}
