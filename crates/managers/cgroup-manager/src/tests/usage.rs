//! What is told of the memory that a pod uses.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::cgroup::{EnsurePodCgroup, ReadPodCgroup};

use super::rig::{pod, with_bench};

#[test]
fn a_container_that_ended_is_left_out_and_one_that_cannot_be_read_is_not() {
    with_bench(async |bench, tree| {
        let a = Arc::new(pod("a", "250m"));
        let made = bench.wiring.ask(EnsurePodCgroup { pod: a.clone() }).await.unwrap().unwrap();
        for (name, bytes) in [("one", 100), ("two", 200)] {
            let path = format!("{}/{name}", made.parent);
            tree.put(&path);
            tree.use_memory(&path, bytes);
        }
        tree.use_memory(&made.parent, 300);
        let read = async || bench.wiring.ask(ReadPodCgroup { pod: a.clone() }).await.unwrap().unwrap();
        let is = read().await;
        let children = |two| BTreeMap::from([("one".to_owned(), Some(100)), ("two".to_owned(), two)]);
        assert_eq!((is.memory_bytes, is.children), (Some(300), children(Some(200))));
        tree.fail("usage", "/two", true);
        assert_eq!(read().await.children, children(None));
        tree.fail("usage", "/two", false);
        // Listed, and gone before it is read.
        tree.end_while_read(&format!("{}/two", made.parent));
        assert_eq!(read().await.children, BTreeMap::from([("one".to_owned(), Some(100))]));
        tree.fail("usage", "poda", true);
        assert_eq!(read().await.memory_bytes, None);
    });
}
