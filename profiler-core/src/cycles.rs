//! Which nodes of a graph lie on a cycle with each other: recursion, where all that is known is
//! who calls whom.

/// The number of the component of each node; nodes are on a cycle if they share one. Tarjan's
/// algorithm, without recursion, since call chains are long.
pub(crate) fn components(node_count: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let mut starts = vec![0u32; node_count + 1];
    for &(from, _) in edges {
        starts[from as usize + 1] += 1;
    }
    for node in 0..node_count {
        starts[node + 1] += starts[node];
    }
    let mut targets = vec![0u32; edges.len()];
    let mut fill = starts.clone();
    for &(from, to) in edges {
        targets[fill[from as usize] as usize] = to;
        fill[from as usize] += 1;
    }
    let mut index = vec![UNSEEN; node_count];
    let mut low = vec![0u32; node_count];
    let mut component = vec![UNSEEN; node_count];
    let mut next_edge = starts.clone();
    let (mut on_path, mut calls) = (Vec::new(), Vec::new());
    let (mut count, mut components) = (0, 0);
    for root in 0..u32::try_from(node_count).unwrap_or(u32::MAX) {
        if index[root as usize] != UNSEEN {
            continue;
        }
        calls.push(root);
        while let Some(&node) = calls.last() {
            let at = node as usize;
            if index[at] == UNSEEN {
                (index[at], low[at]) = (count, count);
                count += 1;
                on_path.push(node);
            }
            if next_edge[at] < starts[at + 1] {
                let target = targets[next_edge[at] as usize] as usize;
                next_edge[at] += 1;
                if index[target] == UNSEEN {
                    calls.push(u32::try_from(target).unwrap_or(0));
                } else if component[target] == UNSEEN {
                    low[at] = low[at].min(index[target]);
                }
                continue;
            }
            calls.pop();
            if let Some(&caller) = calls.last() {
                low[caller as usize] = low[caller as usize].min(low[at]);
            }
            if low[at] == index[at] {
                while let Some(member) = on_path.pop() {
                    component[member as usize] = components;
                    if member == node {
                        break;
                    }
                }
                components += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_cycle_share_a_component() {
        // 0 → 1 → 2 → 1, 2 → 3, 4 → 4.
        let component = components(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)]);
        assert_eq!(component[1], component[2]);
        let mut others = vec![component[0], component[1], component[3], component[4]];
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 4);
    }

    #[test]
    fn long_chains_take_no_stack() {
        let edges: Vec<(u32, u32)> = (0..200_000).map(|node| (node, node + 1)).collect();
        let component = components(200_001, &edges);
        assert_ne!(component[0], component[200_000]);
    }
}
