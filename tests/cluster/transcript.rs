//! kubectl at work: what an operator types, and the fields (not the prose) of what comes back.

use std::collections::BTreeMap;

use crate::node::{LASTS, SOON, kubectl, start, wait_reasons, wait_running};

/// A table's only row, by the names of its columns.
fn row(table: &str) -> BTreeMap<String, String> {
    let mut lines = table.lines();
    let (head, row) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    assert_eq!(lines.next(), None, "one row: {table}");
    // Columns start where their names do; two names of a wide table hold a space.
    let starts: Vec<usize> = head
        .char_indices()
        .filter(|(at, c)| *c != ' ' && (*at == 0 || head[..*at].ends_with("  ")))
        .map(|(at, _)| at)
        .collect();
    let cell = |line: &str, n: usize| {
        let end = starts.get(n + 1).copied().unwrap_or(line.len()).min(line.len());
        line.get(starts[n]..end).unwrap_or_default().trim().to_owned()
    };
    (0..starts.len()).map(|n| (cell(head, n), cell(row, n))).collect()
}

/// `Key:  value` lines of a description, each under the headings above it: `Containers/main/State`.
fn fields(description: &str) -> BTreeMap<String, String> {
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut all = BTreeMap::new();
    for line in description.lines() {
        let indent = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        path.retain(|(depth, _)| *depth < indent);
        path.push((indent, key.to_owned()));
        let name = path.iter().map(|(_, k)| k.as_str()).collect::<Vec<_>>().join("/");
        all.entry(name).or_insert_with(|| value.trim().to_owned());
    }
    all
}

/// Rows of the events at the end of a description: type and reason.
fn events(description: &str) -> Vec<(String, String)> {
    let rows = description.split("\nEvents:").nth(1).unwrap_or_default();
    let words = rows.lines().filter_map(|l| {
        let mut words = l.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    words.filter(|(kind, _)| kind == "Normal" || kind == "Warning").collect()
}

#[test]
fn run_get_describe_and_delete_a_pod() {
    let node = start();
    let overrides = r#"{"spec":{"nodeName":"bed","terminationGracePeriodSeconds":2}}"#;
    let image = testbed::BUSYBOX_IMAGES[0];
    let said = kubectl(
        &node,
        &["run", "web", "--image", image, "--overrides", overrides, "--command", "--", "sh", "-c", LASTS],
    );
    assert_eq!(said.trim(), "pod/web created");
    kubectl(&node, &["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
    let pod = wait_running(&node, "web");
    wait_reasons(&node, "web", &["Pulled", "Created", "Started"]);

    let shown = row(&kubectl(&node, &["get", "pod", "web", "-o", "wide"]));
    for (column, value) in
        [("NAME", "web"), ("READY", "1/1"), ("STATUS", "Running"), ("RESTARTS", "0"), ("NODE", "bed")]
    {
        assert_eq!(shown[column], value, "{shown:?}");
    }
    assert_eq!(pod["status"]["podIP"], shown["IP"].as_str(), "{shown:?}");

    let text = kubectl(&node, &["describe", "pod", "web"]);
    let told = fields(&text);
    let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
    let image_id = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap_or_default();
    let host = format!("bed/{}", node.bed.node_ip());
    for (field, value) in [
        ("Name", "web"),
        ("Node", host.as_str()),
        ("Status", "Running"),
        ("IP", ip),
        ("Containers/web/Container ID", id),
        ("Containers/web/Image", image),
        ("Containers/web/Image ID", image_id),
        ("Containers/web/State", "Running"),
        ("Containers/web/Ready", "True"),
        ("Containers/web/Restart Count", "0"),
        ("QoS Class", "BestEffort"),
    ] {
        assert_eq!(told.get(field).map(String::as_str), Some(value), "{field}:\n{text}");
    }
    assert!(told.contains_key("Containers/web/State/Started"), "{text}");
    for kind in ["Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        let line = text.lines().map(str::trim).find(|l| l.split_whitespace().next() == Some(kind));
        let status = line.and_then(|l| l.split_whitespace().nth(1));
        assert_eq!(status, Some("True"), "{kind}:\n{text}");
    }
    let normal = |reason: &str| ("Normal".to_owned(), reason.to_owned());
    assert_eq!(events(&text), [normal("Pulled"), normal("Created"), normal("Started")], "{text}");

    let said = kubectl(&node, &["delete", "pod", "web", "--timeout=60s"]);
    // A newer kubectl says the namespace and the architecture as well, here and below.
    assert!(said.starts_with("pod \"web\" deleted"), "{said}");
    let gone = node.cluster.kubectl(&["get", "pod", "web"]).expect_err("gone").to_string();
    assert!(gone.contains("NotFound"), "{gone}");
}

#[test]
fn a_failed_pod_is_described_with_its_end() {
    let node = start();
    let overrides = r#"{"spec":{"nodeName":"bed","restartPolicy":"Never"}}"#;
    let image = testbed::BUSYBOX_IMAGES[0];
    kubectl(
        &node,
        &[
            "run",
            "job",
            "--image",
            image,
            "--overrides",
            overrides,
            "--restart=Never",
            "--command",
            "--",
            "sh",
            "-c",
            "exit 4",
        ],
    );
    crate::node::wait_phase(&node, "job", "Failed");
    let shown = row(&kubectl(&node, &["get", "pod", "job"]));
    assert_eq!((shown["READY"].as_str(), shown["STATUS"].as_str()), ("0/1", "Error"), "{shown:?}");
    let text = kubectl(&node, &["describe", "pod", "job"]);
    let told = fields(&text);
    for (field, value) in [
        ("Status", "Failed"),
        ("Containers/job/State", "Terminated"),
        ("Containers/job/State/Reason", "Error"),
        ("Containers/job/State/Exit Code", "4"),
        ("Containers/job/Ready", "False"),
    ] {
        assert_eq!(told.get(field).map(String::as_str), Some(value), "{field}:\n{text}");
    }
    for field in ["Started", "Finished"] {
        assert!(told.contains_key(&format!("Containers/job/State/{field}")), "{text}");
    }
}

#[test]
fn nodes_are_shown_and_described() {
    let node = start();
    crate::node::create(&node, &crate::node::lasting("guest"));
    wait_running(&node, "guest");
    let shown = row(&kubectl(&node, &["get", "node", "bed", "-o", "wide"]));
    let object = node.node().expect("a node");
    let info = |field: &str| object["status"]["nodeInfo"][field].as_str().unwrap_or_default().to_owned();
    let ip = node.bed.node_ip();
    for (column, value) in [
        ("NAME", "bed".to_owned()),
        ("STATUS", "Ready".to_owned()),
        ("INTERNAL-IP", ip),
        ("VERSION", info("kubeletVersion")),
        ("OS-IMAGE", info("osImage")),
        ("KERNEL-VERSION", info("kernelVersion")),
        ("CONTAINER-RUNTIME", info("containerRuntimeVersion")),
    ] {
        assert!(shown[column].starts_with(&value) && !value.is_empty(), "{shown:?}");
    }
    let described = || {
        let text = kubectl(&node, &["describe", "node", "bed"]);
        if fields(&text).get("Lease/HolderIdentity").is_some_and(|h| h == "bed") { Ok(text) } else { Err(text) }
    };
    let text = testbed::wait_until("its lease", SOON, described).unwrap_or_else(|e| panic!("{e}"));
    let told = fields(&text);
    for (field, path) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        for resource in ["cpu", "memory", "pods", "ephemeral-storage"] {
            let value = object["status"][path][resource].as_str();
            assert_eq!(told.get(&format!("{field}/{resource}")).map(String::as_str), value, "{text}");
        }
    }
    for (field, value) in [("Boot ID", info("bootID")), ("Kubelet Version", info("kubeletVersion"))] {
        assert_eq!(told.get(&format!("System Info/{field}")), Some(&value), "{text}");
    }
    assert!(text.lines().any(|l| l.split_whitespace().nth(1) == Some("guest")), "it lists its pods:\n{text}");
    // Which events a description of a node shows has changed with kubectl; that they are there has not.
    let wanted = ["Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"];
    wait_reasons(&node, "bed", &wanted);
}

#[test]
fn tables_and_descriptions_are_read_as_written() {
    let wide = "NAME   READY   NOMINATED NODE   IP\nweb    1/1     <none>           10.0.0.1\n";
    let seen = row(wide);
    assert_eq!((seen["READY"].as_str(), seen["NOMINATED NODE"].as_str()), ("1/1", "<none>"));
    let text = "Name:  web\nContainers:\n  web:\n    State:      Running\n      Started:  now\n    Ready:  True\n\
                Events:\n  Type  Reason\n  ----  ----\n  Normal  Pulled  1s  kubelet  a: b\n";
    let seen = fields(text);
    assert_eq!(seen["Containers/web/State/Started"], "now");
    assert_eq!(seen["Containers/web/Ready"], "True");
    assert_eq!(events(&format!("x\n{text}")), [("Normal".to_owned(), "Pulled".to_owned())]);
}
