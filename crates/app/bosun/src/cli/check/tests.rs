use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn split(line: &str) -> Vec<String> {
    words::split(&words(line)).unwrap().flags
}

#[test]
fn its_own_words_are_taken_out_and_the_rest_is_a_kubelet_s_command_line() {
    assert_eq!(split("a.yaml"), ["--config=a.yaml"]);
    assert_eq!(split("-o json a.yaml --max-pods 5"), ["--config=a.yaml", "--max-pods", "5"]);
    assert_eq!(split("--config a.yaml -v 4"), ["--config", "a.yaml", "-v", "4"]);
    assert_eq!(split("--fail-swap-on a.yaml"), ["--config=a.yaml", "--fail-swap-on"]);
    assert_eq!(split("--config=a --fail-swap-on false"), ["--config=a", "--fail-swap-on", "false"]);
    let asked = words::split(&words("--output=yaml a.yaml")).unwrap();
    assert_eq!(asked.output, Some(Output::Yaml));
    assert!(words::split(&words("-o table a")).unwrap_err().contains("allowed: json, yaml"));
    assert!(words::split(&words("--help")).unwrap().help);
}

#[test]
fn flags_come_from_the_environment_files_of_a_unit() {
    let dir = tempfile::tempdir().unwrap();
    let env = dir.path().join("kubeadm-flags.env");
    std::fs::write(&env, "# made by kubeadm\nKUBELET_KUBEADM_ARGS=\"--node-ip=10.0.0.4 --max-pods=7\"\nHOME=/root\n")
        .unwrap();
    assert_eq!(split(&format!("--env-file {}", env.display())), ["--node-ip=10.0.0.4", "--max-pods=7"]);
    assert_eq!(split("--env-file /nonexistent/x"), Vec::<String>::new());
    let folder = words::split(&words(&format!("--env-file {}", dir.path().display()))).unwrap_err();
    assert!(folder.contains(": cannot be read: "), "{folder}");
}

#[test]
fn errors_come_before_warnings_and_name_file_key_and_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.yaml");
    let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    std::fs::write(&file, format!("{head}maxPods: -1\ncpuManagerPolicy: static\n")).unwrap();
    let answer = judge(&words(&format!("--config {} --node-labels kubernetes.io/x=y", file.display())));
    assert!(!answer.ok);
    let found: Vec<(&str, &str)> = answer.findings.iter().map(|f| (f.at.as_str(), f.key.as_str())).collect();
    let at = file.to_str().unwrap();
    assert_eq!(found, [("--node-labels", ""), (at, "maxPods"), (at, "cpuManagerPolicy")]);
    std::fs::write(&file, format!("{head}cpuManagerPolicy: static\n")).unwrap();
    let answer = judge(&words(&format!("--config {}", file.display())));
    assert!(answer.ok);
    assert_eq!(answer.findings.len(), 1);
    let refused = judge(&words("--maxpods 5"));
    assert_eq!(refused.findings[0].allowed.as_deref(), Some("did you mean --max-pods?"));
}

#[test]
fn the_file_of_the_runtime_within_the_daemon_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let (file, program) = (dir.path().join("runtime.toml"), std::env::current_exe().unwrap());
    let program = program.display();
    let flag = format!("--container-runtime-endpoint=embedded://{}", file.display());
    std::fs::write(&file, format!("oci-runtime = \"{program}\"\nsupervisor = \"{program}\"\n")).unwrap();
    let answer = judge(&words(&flag));
    assert!(answer.ok, "{:?}", answer.findings);
    assert_eq!(answer.files, [file.display().to_string()]);
    for (text, why) in
        [("supervisor = \"/no/such\"\noci-runtime = \"/no/such\"\n", "/no/such: no such program"), ("root = 1", "root")]
    {
        std::fs::write(&file, text).unwrap();
        let answer = judge(&words(&flag));
        assert!(!answer.ok);
        let [finding] = &answer.findings[..] else { panic!("{:?}", answer.findings) };
        assert!(finding.at.ends_with("runtime.toml") && finding.reason.contains(why), "{finding:?}");
    }
}
