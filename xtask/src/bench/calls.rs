//! When did containerd get and answer each call? Its log says so to the nanosecond, whoever called.

use std::collections::BTreeMap;

/// The three calls of a pod with one container, as begin and end in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) sandbox: Option<(f64, f64)>,
    pub(super) create: Option<(f64, f64)>,
    pub(super) start: Option<(f64, f64)>,
}

impl Calls {
    /// Time spent in the three calls, and the end of the last one; `None` until all have been answered.
    pub(super) fn spent_and_end(&self) -> Option<(f64, f64)> {
        let (run, create, start) = (self.sandbox?, self.create?, self.start?);
        Some(((run.1 - run.0) + (create.1 - create.0) + (start.1 - start.0), start.1))
    }

    /// Where a start at `put` waited outside the calls: before the first, before the second, before the third.
    pub(super) fn gaps(&self, put: f64) -> Option<[f64; 3]> {
        let (run, create, start) = (self.sandbox?, self.create?, self.start?);
        Some([run.0 - put, create.0 - run.1, start.0 - create.1])
    }
}

/// Calls by pod name; of a pod that was started twice, the last ones.
pub(super) fn read(log: &str) -> BTreeMap<String, Calls> {
    let mut pods: BTreeMap<String, Calls> = BTreeMap::new();
    let mut begun: BTreeMap<String, f64> = BTreeMap::new();
    let (mut pod_of_sandbox, mut pod_of_container) = (BTreeMap::new(), BTreeMap::new());
    for (time, message) in log.lines().filter_map(line) {
        let id = |mark: &str| message.split_once(mark).and_then(|(_, rest)| rest.split('"').nth(1)).map(str::to_owned);
        if let Some(rest) = message.strip_prefix("RunPodSandbox for &PodSandboxMetadata{Name:") {
            let pod = rest.split(',').next().unwrap_or_default().to_owned();
            match id("returns sandbox id ") {
                Some(sandbox) => {
                    let begin = begun.remove(&pod).unwrap_or(time);
                    pods.entry(pod.clone()).or_default().sandbox = Some((begin, time));
                    pod_of_sandbox.insert(sandbox, pod);
                }
                None => drop(begun.insert(pod, time)),
            }
        } else if message.starts_with("CreateContainer within sandbox ") {
            let Some(sandbox) = id("within sandbox ") else { continue };
            let Some(pod) = pod_of_sandbox.get(&sandbox) else { continue };
            match id("returns container id ") {
                Some(container) => {
                    let begin = begun.remove(&sandbox).unwrap_or(time);
                    pods.entry(pod.clone()).or_default().create = Some((begin, time));
                    pod_of_container.insert(container, pod.clone());
                }
                None => drop(begun.insert(sandbox, time)),
            }
        } else if message.starts_with("StartContainer for ") {
            let Some(container) = id("StartContainer for ") else { continue };
            let Some(pod) = pod_of_container.get(&container) else { continue };
            if message.ends_with("returns successfully") {
                let begin = begun.remove(&container).unwrap_or(time);
                pods.entry(pod.clone()).or_default().start = Some((begin, time));
            } else {
                begun.insert(container, time);
            }
        }
    }
    pods
}

/// Time and message of one line of the log (logfmt with escaped quotes).
fn line(text: &str) -> Option<(f64, String)> {
    let (time, rest) = text.strip_prefix("time=\"")?.split_once('"')?;
    let message = rest.split_once("msg=\"")?.1;
    let mut plain = String::new();
    let mut chars = message.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => plain.extend(chars.next()),
            c => plain.push(c),
        }
    }
    let time: jiff::Timestamp = time.parse().ok()?;
    Some((time.as_nanosecond() as f64 / 1e9, plain))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_three_calls_of_a_pod_are_found() {
        let log = r#"
time="2026-11-20T09:00:00.000000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:a-bed,Uid:u,Namespace:n,Attempt:0,}"
time="2026-11-20T09:00:00.100000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:a-bed,Uid:u,Namespace:n,Attempt:0,} returns sandbox id \"s1\""
time="2026-11-20T09:00:00.200000000Z" level=info msg="CreateContainer within sandbox \"s1\" for container &ContainerMetadata{Name:main,Attempt:0,}"
time="2026-11-20T09:00:00.250000000Z" level=info msg="CreateContainer within sandbox \"s1\" for &ContainerMetadata{Name:main,Attempt:0,} returns container id \"c1\""
time="2026-11-20T09:00:00.300000000Z" level=info msg="StartContainer for \"c1\""
time="2026-11-20T09:00:00.340000000Z" level=info msg="StartContainer for \"c1\" returns successfully"
"#;
        let pods = read(log);
        let (spent, end) = pods["a-bed"].spent_and_end().expect("all three answered");
        assert!((spent - 0.19).abs() < 1e-6, "{spent}");
        assert!((end % 1.0 - 0.34).abs() < 1e-6, "{end}");
        let first_two: String = log.lines().take(3).map(|l| format!("{l}\n")).collect();
        assert_eq!(read(&first_two)["a-bed"].spent_and_end(), None);
    }
}
