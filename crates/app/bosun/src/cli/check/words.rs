//! The command line of `check-config`: its own words taken out, the rest is a kubelet's.

use console::show::Output;

/// What was asked.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) help: bool,
    pub(super) output: Option<Output>,
    /// A kubelet's command line.
    pub(super) flags: Vec<String>,
}

/// # Errors
/// An option without its value, an environment file that cannot be read.
pub(super) fn split(words: &[String]) -> Result<Words, String> {
    let mut out = Words::default();
    let mut rest = words.iter();
    // With --config a word that is no flag is a mistake, for the parser of flags to name.
    let named = words.iter().any(|w| w == "--config" || w.starts_with("--config="));
    let mut file = None;
    // Whether the word before may take the next one as its value.
    let mut open = false;
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let mut value_of = |what: &str| {
            let value = value.map(str::to_owned).or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("{name} needs {what}"))
        };
        match name {
            "-h" | "--help" => out.help = true,
            "-o" | "--output" => out.output = Some(output(&value_of("json or yaml")?)?),
            "-ojson" => out.output = Some(Output::Json),
            "-oyaml" => out.output = Some(Output::Yaml),
            "--env-file" => {
                let path = value_of("a file")?;
                match std::fs::read_to_string(&path) {
                    Ok(text) => out.flags.extend(env_file(&text)),
                    // Optional in the units of kubeadm.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => eprintln!("{path} is not there, skipped"),
                    Err(e) => return Err(format!("{path}: cannot be read: {e}")),
                }
            }
            _ if !open && !named && file.is_none() && !word.starts_with('-') => file = Some(word.clone()),
            _ => {
                let long = word.starts_with("--") && value.is_none() && !node_config::flags::is_switch(word);
                open = long || word == "-v";
                out.flags.push(word.clone());
                continue;
            }
        }
        open = false;
    }
    if let Some(file) = file {
        out.flags.insert(0, format!("--config={file}"));
    }
    Ok(out)
}

fn output(word: &str) -> Result<Output, String> {
    match word {
        "json" => Ok(Output::Json),
        "yaml" => Ok(Output::Yaml),
        other => Err(format!("--output {other:?} is not known (allowed: json, yaml)")),
    }
}

/// The words of all variables whose name ends with `_ARGS`, as systemd would hand them over.
fn env_file(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with(['#', ';'])) {
        let Some((name, value)) = line.split_once('=') else { continue };
        if name.trim().ends_with("_ARGS") {
            let value = value.trim();
            let unquoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            out.extend(unquoted.unwrap_or(value).split_whitespace().map(str::to_owned));
        }
    }
    out
}
