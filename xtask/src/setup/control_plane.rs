//! etcd, kube-apiserver, kube-controller-manager and kubectl, from Debian alone.
//!
//! Debian packages etcd. The rest is built from its source package `kubernetes`, which is whole but for one generated
//! file. Where sources lie is read from the machine's own apt configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use testbed::{CONTROL_PLANE, ControlPlane, ETCD};

/// Package and a file that proves it.
const TOOLS: &[(&str, &str)] =
    &[("etcd-server", ETCD), ("golang-go", "/usr/bin/go"), ("dpkg-dev", "/usr/bin/dpkg-source")];

const REPOSITORY: &str = "k8s.io/kubernetes";
/// Marks packages whose types the generated file describes; those below the others have generated files of their own.
const TAG: &str = "// +k8s:openapi-gen=";
const NOT_OURS: &[&str] = &["k8s.io/code-generator", "k8s.io/sample-apiserver"];

/// Whether a cluster can start here; says what to do if not.
pub(crate) fn check() -> anyhow::Result<()> {
    ControlPlane::find()?;
    Ok(())
}

/// Installs and builds what is missing; skips what is there.
pub(crate) fn bring() -> anyhow::Result<()> {
    let missing = ControlPlane::missing();
    if missing.is_empty() {
        println!("  have     control plane {} in {CONTROL_PLANE}", ControlPlane::find()?.version());
        return Ok(());
    }
    for path in &missing {
        println!("  missing  {}", path.display());
    }
    for (variable, _) in ControlPlane::BUILT {
        if let Some(path) = std::env::var_os(variable).map(PathBuf::from).filter(|p| !p.is_file()) {
            bail!("{variable} names {}, which is no file", path.display());
        }
    }
    let build = missing.iter().any(|p| p.starts_with(CONTROL_PLANE));
    let wanted = TOOLS.iter().filter(|(name, proof)| (build || *name == "etcd-server") && !Path::new(proof).exists());
    let wanted: Vec<&str> = wanted.map(|(name, _)| *name).collect();
    if !wanted.is_empty() {
        super::apt::install(&wanted)?;
    }
    if build {
        let dir = Path::new(CONTROL_PLANE).with_file_name("kubernetes-build");
        let begin = std::time::Instant::now();
        Build { dir: dir.clone() }.run()?;
        std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        println!("  built    in {:.0} s", begin.elapsed().as_secs_f64());
    }
    println!("  have     control plane {} in {CONTROL_PLANE}", ControlPlane::find()?.version());
    Ok(())
}

struct Build {
    dir: PathBuf,
}

impl Build {
    fn run(&self) -> anyhow::Result<()> {
        let _ = std::fs::remove_dir_all(&self.dir);
        for folder in ["apt/parts", "apt/lists/partial", "apt/cache/archives/partial", "out", "gopath/src/k8s.io"] {
            let path = self.dir.join(folder);
            std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        }
        let version = self.fetch()?;
        self.generate()?;
        self.compile(&version)?;
        std::fs::create_dir_all(CONTROL_PLANE)?;
        for (_, name) in ControlPlane::BUILT {
            let (from, to) = (self.dir.join("out").join(name), Path::new(CONTROL_PLANE).join(name));
            std::fs::rename(&from, &to)
                .with_context(|| format!("cannot move {} to {}", from.display(), to.display()))?;
        }
        Ok(())
    }

    fn tree(&self) -> PathBuf {
        self.dir.join("gopath/src").join(REPOSITORY)
    }

    /// Downloads and unpacks the source package; answers the version that it holds.
    fn fetch(&self) -> anyhow::Result<String> {
        let sources = source_lists(Path::new("/etc/apt"), &codename()?)?;
        if sources.is_empty() {
            bail!(
                "no Debian archive is configured in /etc/apt, so there is no source package to build from; \
                 set KUBE_APISERVER, KUBE_CONTROLLER_MANAGER and KUBECTL to programs that you have"
            );
        }
        for (n, (extension, text)) in sources.iter().enumerate() {
            std::fs::write(self.dir.join(format!("apt/parts/{n}.{extension}")), text)?;
        }
        let apt = self.dir.join("apt");
        let apt = apt.display();
        let config = self.dir.join("apt.conf");
        let text = format!(
            "Dir::Etc::SourceList \"/dev/null\";\nDir::Etc::SourceParts \"{apt}/parts\";\nDir::State::Lists \"{apt}/lists\";\n\
             Dir::Cache \"{apt}/cache\";\nAPT::Sandbox::User \"root\";\n"
        );
        std::fs::write(&config, text)?;
        println!("  step     the list of source packages");
        self.call(Command::new("apt-get").env("APT_CONFIG", &config).args(["update", "-qq"]))?;
        println!("  step     source package kubernetes (34 MB)");
        let mut download = Command::new("apt-get");
        download.env("APT_CONFIG", &config).args(["source", "-qq", "--download-only", "kubernetes"]);
        self.call(&mut download).context(
            "this Debian has no source package `kubernetes` (12 has); \
             set KUBE_APISERVER, KUBE_CONTROLLER_MANAGER and KUBECTL to programs that you have",
        )?;
        let files = std::fs::read_dir(&self.dir)?.flatten().map(|e| e.path());
        let description = files.into_iter().find(|p| p.extension().is_some_and(|e| e == "dsc"));
        let description = description.context("the source package came without its description")?;
        println!("  step     unpack it");
        // apt has compared every file with the signed index.
        self.call(Command::new("dpkg-source").args(["--no-check", "-x"]).arg(&description).arg(self.tree()))?;
        let name = description.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        upstream_version(&name).with_context(|| format!("no version in {name}"))
    }

    /// The one file that the source package lacks.
    fn generate(&self) -> anyhow::Result<()> {
        println!("  step     build the generator of the API description");
        let generator = self.dir.join("openapi-gen");
        let package = format!("{REPOSITORY}/vendor/k8s.io/kube-openapi/cmd/openapi-gen");
        self.call(self.go().arg("build").arg("-o").arg(&generator).arg(package))?;
        println!("  step     generate the API description");
        let mut packages = BTreeSet::new();
        for (folder, import) in [("pkg", "pkg"), ("cmd", "cmd"), ("plugin", "plugin"), ("staging/src", "vendor")] {
            tagged(&self.tree().join(folder), &format!("{REPOSITORY}/{import}"), &mut packages)?;
        }
        packages.retain(|p| !NOT_OURS.iter().any(|n| p.contains(n)));
        let packages = packages.into_iter().collect::<Vec<_>>().join(",");
        let mut generate = self.quiet(&generator);
        generate.args(["-i", &packages, "-p", &format!("{REPOSITORY}/pkg/generated/openapi")]);
        generate.args(["-O", "zz_generated.openapi", "-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt"]);
        self.call(generate.arg("-r").arg(self.dir.join("report")))
    }

    fn compile(&self, version: &str) -> anyhow::Result<()> {
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let mut stamps = vec!["-s".to_owned(), "-w".to_owned()];
        for package in ["component-base/version", "client-go/pkg/version"] {
            let values =
                [("gitVersion", format!("v{version}")), ("gitMajor", major.into()), ("gitMinor", minor.into())];
            stamps.extend(values.map(|(name, v)| format!("-X {REPOSITORY}/vendor/k8s.io/{package}.{name}={v}")));
        }
        let out = format!("{}/out/", self.dir.display());
        for (_, name) in ControlPlane::BUILT {
            println!("  step     build {name} {version} (minutes)");
            let mut build = self.go();
            build.args(["build", "-tags", "providerless", "-ldflags", &stamps.join(" "), "-o", &out]);
            self.call(build.arg(format!("./cmd/{name}")))?;
        }
        Ok(())
    }

    fn go(&self) -> Command {
        self.quiet(Path::new("go"))
    }

    /// A program that works on the tree and leaves the processors to whoever needs them.
    fn quiet(&self, program: &Path) -> Command {
        let mut command = Command::new("nice");
        command.arg("-n10").arg(program).current_dir(self.tree());
        command.env("GOPATH", self.dir.join("gopath")).env("GOCACHE", self.dir.join("go-cache"));
        command.env("GO111MODULE", "off").env("CGO_ENABLED", "0").env_remove("GOFLAGS");
        command
    }

    fn call(&self, command: &mut Command) -> anyhow::Result<()> {
        let name = command.get_program().to_string_lossy().into_owned();
        if command.get_current_dir().is_none() {
            command.current_dir(&self.dir);
        }
        let output = command.output().with_context(|| format!("cannot start {name}"))?;
        if !output.status.success() {
            let words = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
            let said = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = said.lines().rev().take(20).collect();
            let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            bail!("`{name} {words:.300}` ended with {}:\n{last}", output.status);
        }
        Ok(())
    }
}

/// Packages below `dir` that carry the tag; `import` is what `dir` is imported as.
fn tagged(dir: &Path, import: &str, found: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type()?);
        if kind.is_dir() && name != "testdata" {
            tagged(&entry.path(), &format!("{import}/{name}"), found)?;
        } else if kind.is_file() && name.ends_with(".go") {
            let text = std::fs::read(entry.path())?;
            if String::from_utf8_lossy(&text).lines().any(|line| line.starts_with(TAG)) {
                found.insert(import.to_owned());
            }
        }
    }
    Ok(())
}

/// `kubernetes_1.20.5+really1.20.2-1.1` holds 1.20.2.
fn upstream_version(name: &str) -> Option<String> {
    let version = name.split_once('_')?.1;
    let upstream = version.rsplit_once('-').map_or(version, |(upstream, _)| upstream);
    let really = upstream.rsplit_once("really").map_or(upstream, |(_, really)| really);
    let digits: String = really.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (digits.split('.').count() >= 3).then_some(digits)
}

fn codename() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let name = text.lines().find_map(|l| l.strip_prefix("VERSION_CODENAME="));
    name.map(|n| n.trim_matches('"').to_owned()).context("/etc/os-release names no release")
}

/// The machine's own archives of release `codename`, turned into archives of sources: file extension and text.
fn source_lists(apt: &Path, codename: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut files = vec![apt.join("sources.list")];
    files.extend(std::fs::read_dir(apt.join("sources.list.d")).into_iter().flatten().flatten().map(|e| e.path()));
    files.sort();
    let mut lists = Vec::new();
    for path in files.into_iter().filter(|p| p.is_file()) {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let (extension, sources) = match path.extension().and_then(|e| e.to_str()) {
            Some("list") => ("list", one_line(&text, codename)),
            Some("sources") => ("sources", stanzas(&text, codename)),
            _ => continue,
        };
        if !sources.is_empty() {
            lists.push((extension, sources));
        }
    }
    Ok(lists)
}

fn is_ours(suite: &str, codename: &str) -> bool {
    suite == codename || suite.strip_prefix(codename).is_some_and(|rest| rest.starts_with('-'))
}

/// `deb [options] URI SUITE COMPONENTS` lines.
fn one_line(text: &str, codename: &str) -> String {
    let ours = |line: &&str| line.starts_with("deb ") && line.split_whitespace().any(|word| is_ours(word, codename));
    text.lines().filter(ours).map(|line| line.replacen("deb ", "deb-src ", 1) + "\n").collect()
}

/// Paragraphs of fields.
fn stanzas(text: &str, codename: &str) -> String {
    let mut out = String::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| stanza.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        let suite = field("Suites:").split_whitespace().any(|s| is_ours(s, codename));
        if suite && field("Types:").split_whitespace().any(|t| t == "deb") {
            let lines = stanza.lines().map(|l| if l.starts_with("Types:") { "Types: deb-src" } else { l });
            out.extend(lines.map(|l| format!("{l}\n")));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{one_line, stanzas, upstream_version};

    #[test]
    fn versions_are_what_the_package_really_holds() {
        for (name, version) in [
            ("kubernetes_1.20.5+really1.20.2-1.1+deb12u1", Some("1.20.2")),
            ("kubernetes_1.33.4+ds-1", Some("1.33.4")),
            ("kubernetes", None),
        ] {
            assert_eq!(upstream_version(name).as_deref(), version, "{name}");
        }
    }

    #[test]
    fn only_archives_of_the_release_become_source_archives() {
        let list = "# deb old\ndeb http://mirror/debian bookworm main\ndeb http://else/apt tool-bookworm main\n\
                    deb [signed-by=/k] http://mirror/debian bookworm-updates main\n";
        assert_eq!(
            one_line(list, "bookworm"),
            "deb-src http://mirror/debian bookworm main\ndeb-src [signed-by=/k] http://mirror/debian bookworm-updates main\n"
        );
        let text = "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\nSigned-By: /k\n\n\
                    Types: deb\nURIs: http://else\nSuites: nodistro\n";
        assert_eq!(
            stanzas(text, "bookworm"),
            "Types: deb-src\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\nSigned-By: /k\n\n"
        );
    }
}
