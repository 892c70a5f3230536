use std::fs;
use std::path::{Path, PathBuf};

use fake_api::{Authority, Issued};
use model::k8s_openapi::ByteString;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Auth, ExecVersion, Trust, read, read_at};

/// A folder with a certificate of each sort.
struct Folder {
    dir: TempDir,
    ca: String,
    node: Issued,
}

impl Folder {
    fn new() -> Self {
        let authority = Authority::new();
        let (node, other) = (authority.node("n1"), authority.node("n2"));
        let dir = TempDir::new().unwrap();
        let over = authority.client("n1", (2020, 2021));
        let future = authority.client("n1", (2100, 2101));
        let files: &[(&str, &str)] = &[
            ("ca.crt", &authority.pem),
            ("node.crt", &node.certificate),
            ("node.key", &node.key),
            ("both.pem", &format!("{}{}", node.certificate, node.key)),
            ("other.key", &other.key),
            ("over.crt", &over.certificate),
            ("over.key", &over.key),
            ("future.crt", &future.certificate),
            ("future.key", &future.key),
            ("empty", ""),
            ("text", "hello\n"),
            ("broken.crt", "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n"),
            ("open.crt", &node.certificate.replace("-----END CERTIFICATE-----", "")),
            ("noise.crt", "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n"),
            ("broken.key", "-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----\n"),
            ("locked.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
            ("token", "abc.def\n"),
            ("bad-token", "abc def"),
        ];
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        fs::create_dir(dir.path().join("folder")).unwrap();
        Self { dir, ca: authority.pem, node }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, text: &str) -> PathBuf {
        let file = self.path().join("kubeconfig");
        fs::write(&file, text).unwrap();
        file
    }

    /// Names and contents of everything in it.
    fn picture(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let entries = fs::read_dir(self.path()).unwrap().map(|e| e.unwrap().path());
        let mut all: Vec<_> = entries.map(|p| (p.clone(), fs::read(&p).ok())).collect();
        all.sort();
        all
    }
}

fn good() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "preferences": {},
        "clusters": [{ "name": "k", "cluster": { "server": "https://10.0.0.1:6443", "certificate-authority": "ca.crt" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u", "namespace": "default" } }],
        "users": [{ "name": "u", "user": { "client-certificate": "node.crt", "client-key": "node.key" } }],
    })
}

fn base64(bytes: &[u8]) -> Value {
    serde_json::to_value(ByteString(bytes.to_vec())).unwrap()
}

/// The good one with one value changed; `null` removes it.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = good();
    set(&mut document, pointer, value);
    document
}

fn set(document: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap();
    if value.is_null() {
        parent.as_object_mut().unwrap().remove(key);
    } else {
        parent[key] = value;
    }
}

fn with_user(user: Value) -> Value {
    with("/users/0/user", user)
}

fn with_exec(change: impl FnOnce(&mut Value)) -> Value {
    let mut exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "give", "interactiveMode": "Never",
    });
    change(&mut exec);
    with_user(json!({ "exec": exec }))
}

const SERVER: &str = "/clusters/0/cluster/server";
const CLUSTER: &str = "clusters[0].cluster";
const USER: &str = "users[0].user";

/// Name, document, key, part of the reason.
type Row = (&'static str, Value, String, &'static str);

fn structure_rows() -> Vec<Row> {
    let at = str::to_owned;
    vec![
        ("wrong kind", with("/kind", json!("Pod")), at("kind"), "not a kubeconfig"),
        ("kind is a number", with("/kind", json!(1)), at("kind"), "is a number, not a text"),
        ("wrong version", with("/apiVersion", json!("v2")), at("apiVersion"), "not a kubeconfig"),
        ("no current context", with("/current-context", Value::Null), at("current-context"), "is missing"),
        ("empty current context", with("/current-context", json!("")), at("current-context"), "is missing"),
        ("current context is a list", with("/current-context", json!([])), at("current-context"), "is a list"),
        (
            "unknown context",
            with("/current-context", json!("x")),
            at("current-context"),
            "names no element of contexts",
        ),
        ("contexts is a mapping", with("/contexts", json!({})), at("contexts"), "is a mapping, not a list"),
        ("no contexts", with("/contexts", Value::Null), at("current-context"), "names no element of contexts"),
        ("context is a text", with("/contexts", json!(["c"])), at("contexts[0]"), "is a text, not a mapping"),
        ("context without name", with("/contexts", json!([{ "context": {} }])), at("contexts[0].name"), "is missing"),
        ("context without body", with("/contexts", json!([{ "name": "c" }])), at("contexts[0].context"), "is missing"),
        (
            "context body is a list",
            with("/contexts/0/context", json!([])),
            at("contexts[0].context"),
            "is not a mapping",
        ),
        (
            "context without cluster",
            with("/contexts/0/context/cluster", Value::Null),
            at("contexts[0].context.cluster"),
            "is missing",
        ),
        (
            "unknown cluster",
            with("/contexts/0/context/cluster", json!("x")),
            at("contexts[0].context.cluster"),
            "names no element of clusters",
        ),
        (
            "unknown user",
            with("/contexts/0/context/user", json!("x")),
            at("contexts[0].context.user"),
            "names no element of users",
        ),
        (
            "no clusters",
            with("/clusters", Value::Null),
            at("contexts[0].context.cluster"),
            "names no element of clusters",
        ),
        ("clusters is a text", with("/clusters", json!("k")), at("clusters"), "is a text, not a list"),
        ("cluster without body", with("/clusters", json!([{ "name": "k" }])), at(CLUSTER), "is missing"),
        ("user without body", with("/users", json!([{ "name": "u" }])), at(USER), "is missing"),
    ]
}

fn cluster_rows() -> Vec<Row> {
    let at = |key: &str| format!("{CLUSTER}.{key}");
    let ca = |value: Value| with("/clusters/0/cluster/certificate-authority", value);
    let data = |value: Value| with("/clusters/0/cluster/certificate-authority-data", value);
    vec![
        ("no server", with(SERVER, Value::Null), at("server"), "is missing"),
        ("empty server", with(SERVER, json!("")), at("server"), "is missing"),
        ("server is a number", with(SERVER, json!(6443)), at("server"), "is a number"),
        ("server with spaces", with(SERVER, json!("https://a b")), at("server"), "is not a URL"),
        ("server of another scheme", with(SERVER, json!("ftp://h")), at("server"), "unknown scheme"),
        ("server without host", with(SERVER, json!("https://:6443")), at("server"), ""),
        ("server with port 0", with(SERVER, json!("https://h:0")), at("server"), "port"),
        ("server with port 70000", with(SERVER, json!("https://h:70000")), at("server"), ""),
        ("server with a password", with(SERVER, json!("https://a:b@h")), at("server"), "name and password"),
        ("server with a query", with(SERVER, json!("https://h/?a=b")), at("server"), "query"),
        ("authority is missing", ca(json!("nowhere.crt")), at("certificate-authority"), "cannot be read"),
        ("authority is a folder", ca(json!("folder")), at("certificate-authority"), "is a directory"),
        ("authority is empty", ca(json!("empty")), at("certificate-authority"), "no PEM block"),
        ("authority is not PEM", ca(json!("text")), at("certificate-authority"), "no PEM block"),
        ("authority is a key", ca(json!("node.key")), at("certificate-authority"), "no PEM block"),
        ("authority is broken", ca(json!("broken.crt")), at("certificate-authority"), "cannot be read"),
        ("authority has no end", ca(json!("open.crt")), at("certificate-authority"), "cannot be read"),
        ("authority is noise", ca(json!("noise.crt")), at("certificate-authority"), "cannot be read"),
        ("authority data is not base64", data(json!("!!")), at("certificate-authority-data"), "not base64"),
        ("authority data is not PEM", data(base64(b"hello")), at("certificate-authority-data"), "no PEM block"),
        ("authority data is a list", data(json!([1])), at("certificate-authority-data"), "is a list"),
        (
            "insecure with authority",
            with("/clusters/0/cluster/insecure-skip-tls-verify", json!(true)),
            at("insecure-skip-tls-verify"),
            "contradicts",
        ),
        (
            "insecure is a text",
            with("/clusters/0/cluster/insecure-skip-tls-verify", json!("yes")),
            at("insecure-skip-tls-verify"),
            "not a switch",
        ),
        (
            "server name is none",
            with("/clusters/0/cluster/tls-server-name", json!("a b")),
            at("tls-server-name"),
            "not a host name",
        ),
        (
            "proxy of another scheme",
            with("/clusters/0/cluster/proxy-url", json!("socks5://h:1")),
            at("proxy-url"),
            "not spoken",
        ),
        (
            "proxy is no URL",
            with("/clusters/0/cluster/proxy-url", json!("http://a b")),
            at("proxy-url"),
            "is not a URL",
        ),
    ]
}

fn certificate_rows() -> Vec<Row> {
    let at = |key: &str| format!("{USER}.{key}");
    let pair =
        |certificate: &str, key: &str| with_user(json!({ "client-certificate": certificate, "client-key": key }));
    vec![
        (
            "certificate without key",
            with_user(json!({ "client-certificate": "node.crt" })),
            at("client-key"),
            "is missing",
        ),
        (
            "key without certificate",
            with_user(json!({ "client-key": "node.key" })),
            at("client-certificate"),
            "is missing",
        ),
        ("certificate is missing", pair("nowhere", "node.key"), at("client-certificate"), "cannot be read"),
        ("certificate is a folder", pair("folder", "node.key"), at("client-certificate"), "is a directory"),
        ("certificate is empty", pair("empty", "node.key"), at("client-certificate"), "no PEM block"),
        ("certificate is a key", pair("node.key", "node.key"), at("client-certificate"), "no PEM block"),
        ("certificate is broken", pair("broken.crt", "node.key"), at("client-certificate"), "cannot be read"),
        ("certificate is over", pair("over.crt", "over.key"), at("client-certificate"), "expired at 2021-01-01"),
        (
            "certificate is of the future",
            pair("future.crt", "future.key"),
            at("client-certificate"),
            "not valid before 2100-01-01",
        ),
        (
            "certificate is a number",
            with_user(json!({ "client-certificate": 7, "client-key": "node.key" })),
            at("client-certificate"),
            "is a number",
        ),
        ("key is missing", pair("node.crt", "nowhere"), at("client-key"), "cannot be read"),
        ("key is empty", pair("node.crt", "empty"), at("client-key"), "no unencrypted PEM private key"),
        ("key is a certificate", pair("node.crt", "node.crt"), at("client-key"), "no unencrypted PEM private key"),
        ("key of another", pair("node.crt", "other.key"), at("client-key"), "does not belong"),
        ("key is broken", pair("node.crt", "broken.key"), at("client-key"), "cannot be used"),
        ("key is encrypted", pair("node.crt", "locked.key"), at("client-key"), "encrypted"),
        (
            "certificate data is not base64",
            with_user(json!({ "client-certificate-data": "%", "client-key": "node.key" })),
            at("client-certificate-data"),
            "not base64",
        ),
        (
            "key data is not base64",
            with_user(json!({ "client-certificate": "node.crt", "client-key-data": "%" })),
            at("client-key-data"),
            "not base64",
        ),
        (
            "key data is not a key",
            with_user(json!({ "client-certificate": "node.crt", "client-key-data": base64(b"x") })),
            at("client-key-data"),
            "no unencrypted",
        ),
    ]
}

fn auth_rows() -> Vec<Row> {
    let at = |key: &str| format!("{USER}.{key}");
    vec![
        ("token with a line break", with_user(json!({ "token": "a\nb" })), at("token"), "characters that no token has"),
        ("token is a number", with_user(json!({ "token": 5 })), at("token"), "is a number"),
        ("token file is missing", with_user(json!({ "tokenFile": "nowhere" })), at("tokenFile"), "cannot be read"),
        ("token file is empty", with_user(json!({ "tokenFile": "empty" })), at("tokenFile"), "is empty"),
        ("token file with spaces", with_user(json!({ "tokenFile": "bad-token" })), at("tokenFile"), "not a token"),
        ("two ways to log in", with_user(json!({ "token": "t", "username": "u" })), USER.to_owned(), "more than one"),
        (
            "auth provider",
            with_user(json!({ "auth-provider": { "name": "gcp" } })),
            at("auth-provider"),
            "no longer supported",
        ),
        ("impersonation", with_user(json!({ "as": "admin", "token": "t" })), at("as"), "acts as nobody"),
        ("exec is a text", with_user(json!({ "exec": "give" })), at("exec"), "is not a mapping"),
        ("exec without command", with_exec(|e| e["command"] = Value::Null), at("exec.command"), "is missing"),
        ("exec without version", with_exec(|e| e["apiVersion"] = Value::Null), at("exec.apiVersion"), "is missing"),
        (
            "exec of an old version",
            with_exec(|e| e["apiVersion"] = json!("client.authentication.k8s.io/v1alpha1")),
            at("exec.apiVersion"),
            "not a version",
        ),
        (
            "exec without mode",
            with_exec(|e| e["interactiveMode"] = Value::Null),
            at("exec.interactiveMode"),
            "is missing",
        ),
        (
            "exec that asks",
            with_exec(|e| e["interactiveMode"] = json!("Always")),
            at("exec.interactiveMode"),
            "no terminal",
        ),
        (
            "exec of unknown mode",
            with_exec(|e| e["interactiveMode"] = json!("Maybe")),
            at("exec.interactiveMode"),
            "not a mode",
        ),
        ("exec arguments are numbers", with_exec(|e| e["args"] = json!([1])), at("exec.args[0]"), "is a number"),
        ("exec arguments are a text", with_exec(|e| e["args"] = json!("a b")), at("exec.args"), "not a list"),
        (
            "exec variable without name",
            with_exec(|e| e["env"] = json!([{ "value": "x" }])),
            at("exec.env[0].name"),
            "is missing",
        ),
        (
            "exec variable with =",
            with_exec(|e| e["env"] = json!([{ "name": "a=b" }])),
            at("exec.env[0].name"),
            "not the name",
        ),
        (
            "exec cluster info is a text",
            with_exec(|e| e["provideClusterInfo"] = json!("x")),
            at("exec.provideClusterInfo"),
            "not a switch",
        ),
    ]
}

#[test]
fn each_broken_kubeconfig_is_refused_with_file_key_and_reason_and_nothing_is_written() {
    let folder = Folder::new();
    let rows: Vec<Row> = [structure_rows(), cluster_rows(), certificate_rows(), auth_rows()].concat();
    assert!(rows.len() >= 80, "{}", rows.len());
    let mut wrong = Vec::new();
    for (name, document, path, reason) in rows {
        let file = folder.write(&document.to_string());
        let before = folder.picture();
        let problems = read(&file).err().unwrap_or_default();
        let date = name.contains("is over") || name.contains("of the future");
        let one = problems.len() == 1 && problems[0].file == file && problems[0].path == path;
        if !one || !problems[0].reason.contains(reason) || problems[0].out_of_date != date {
            wrong.push(format!("{name}: wanted {path}: {reason}, got {problems:?}"));
        }
        assert_eq!(before, folder.picture(), "{name}: something was written");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_that_are_no_kubeconfigs_are_refused_as_a_whole() {
    let folder = Folder::new();
    let rows: [(&str, &[u8], &str); 7] = [
        ("empty", b"", "is empty"),
        ("spaces", b"  \n", "is empty"),
        ("not UTF-8", b"\xff\xfe", "is not UTF-8"),
        ("not YAML", b"a: [1", "is not YAML"),
        ("tabs", b"a:\n\t- b", "is not YAML"),
        ("a list", b"- a\n", "is a list, not a mapping"),
        ("a text", b"hello", "is a text, not a mapping"),
    ];
    for (name, bytes, reason) in rows {
        let file = folder.path().join("kubeconfig");
        fs::write(&file, bytes).unwrap();
        let problems = read(&file).unwrap_err();
        assert!(problems[0].path.is_empty() && problems[0].reason.contains(reason), "{name}: {problems:?}");
    }
    let nowhere = folder.path().join("nowhere");
    assert!(read(&nowhere).unwrap_err()[0].reason.contains("cannot be read"));
    assert!(read(&folder.path().join("folder")).unwrap_err()[0].reason.contains("is a directory"));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let folder = Folder::new();
    let mut document = with(SERVER, json!("ftp://h"));
    set(&mut document, "/clusters/0/cluster/certificate-authority", json!("nowhere"));
    set(&mut document, "/users/0/user/client-key", json!("other.key"));
    set(&mut document, "/users/0/user/tokenFile", json!("empty"));
    let problems = read(&folder.write(&document.to_string())).unwrap_err();
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn secrets_do_not_stand_in_messages() {
    let folder = Folder::new();
    let document = with_user(json!({ "token": "s3cret with spaces", "client-key-data": "s3cret%" }));
    let problems = read(&folder.write(&document.to_string())).unwrap_err();
    assert!(problems.iter().all(|p| !p.to_string().contains("s3cret")), "{problems:?}");
    let broken = format!("users: [{{token: s3cret, x: [}}\n{}", good());
    let problems = read(&folder.write(&broken)).unwrap_err();
    assert!(problems.iter().all(|p| !p.to_string().contains("s3cret")), "{problems:?}");
}

#[test]
fn good_kubeconfigs_are_read() {
    let folder = Folder::new();
    let plain = read(&folder.write(&good().to_string())).unwrap();
    assert_eq!(plain.server.to_string(), "https://10.0.0.1:6443/");
    assert_eq!(plain.trust, Trust::Authorities(folder.ca.clone().into_bytes()));
    assert!(plain.identity.is_some() && plain.auth == Auth::None);

    let inline = with_user(json!({
        "client-certificate-data": base64(folder.node.certificate.as_bytes()),
        "client-key-data": base64(folder.node.key.as_bytes()),
        "client-certificate": "nowhere",
    }));
    assert!(read(&folder.write(&inline.to_string())).unwrap().identity.is_some(), "data goes before files");
    let both = with_user(json!({ "client-certificate": "both.pem", "client-key": "both.pem" }));
    assert!(read(&folder.write(&both.to_string())).unwrap().identity.is_some(), "one file may hold both");

    let tokens = with_user(json!({ "tokenFile": "token", "token": "old" }));
    let path = folder.path().join("token");
    assert_eq!(read(&folder.write(&tokens.to_string())).unwrap().auth, Auth::TokenFile(path));

    let bare = with("/clusters/0/cluster", json!({ "server": "localhost:8080" }));
    assert_eq!(read(&folder.write(&bare.to_string())).unwrap().server.to_string(), "http://localhost:8080/");
}

#[test]
fn exec_plugins_are_read() {
    let folder = Folder::new();
    let document = with_exec(|exec| {
        exec["apiVersion"] = json!("client.authentication.k8s.io/v1beta1");
        exec["command"] = json!("./bin/give");
        exec["args"] = json!(["token", "-i"]);
        exec["env"] = json!([{ "name": "A", "value": "b" }]);
        exec["provideClusterInfo"] = json!(true);
    });
    let Auth::Exec(plugin) = read(&folder.write(&document.to_string())).unwrap().auth else { panic!("no exec") };
    assert_eq!(plugin.version, ExecVersion::V1Beta1);
    assert_eq!(plugin.command, folder.path().join("./bin/give"));
    assert_eq!(
        (plugin.args, plugin.env),
        (vec!["token".to_owned(), "-i".to_owned()], vec![("A".to_owned(), "b".to_owned())])
    );
    let cluster = plugin.cluster.unwrap();
    assert_eq!(cluster["server"], "https://10.0.0.1:6443");
    assert_eq!(cluster["certificate-authority-data"], base64(folder.ca.as_bytes()));
}

#[test]
fn yaml_as_kubeadm_writes_it_is_read() {
    let folder = Folder::new();
    let text = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://10.0.0.1:6443\n  \
         name: kubernetes\ncontexts:\n- context:\n    cluster: kubernetes\n    user: system:node:n1\n  name: \
         system:node:n1@kubernetes\ncurrent-context: system:node:n1@kubernetes\nkind: Config\npreferences: {{}}\nusers:\n\
         - name: system:node:n1\n  user:\n    client-certificate: {1}/both.pem\n    client-key: {1}/both.pem\n",
        base64(folder.ca.as_bytes()).as_str().unwrap(),
        folder.path().display(),
    );
    assert!(read(&folder.write(&text)).unwrap().identity.is_some());
}

#[test]
fn validity_can_be_left_out() {
    let folder = Folder::new();
    let over = with_user(json!({ "client-certificate": "over.crt", "client-key": "over.key" }));
    let file = folder.write(&over.to_string());
    assert!(read_at(&file, None).unwrap().identity.is_some());
    assert!(read_at(&file, Some("2020-06-01T00:00:00Z".parse().unwrap())).is_ok());
}

#[test]
fn certificates_of_version_1_are_taken() {
    let folder = Folder::new();
    fs::write(folder.path().join("old.crt"), VERSION_1).unwrap();
    fs::write(folder.path().join("old.key"), VERSION_1_KEY).unwrap();
    let pair = |key: &str| with_user(json!({ "client-certificate": "old.crt", "client-key": key }));
    assert!(read_at(&folder.write(&pair("old.key").to_string()), None).unwrap().identity.is_some());
    let problems = read_at(&folder.write(&pair("node.key").to_string()), None).unwrap_err();
    assert!(problems[0].reason.contains("does not belong"), "{problems:?}");
}

/// As `openssl x509 -req` makes them without extensions.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----\n\
MIIB+jCB4wIUQ3Op8dLJbI62mINofpDhIXxxXTgwDQYJKoZIhvcNAQELBQAwDTEL\n\
MAkGA1UEAwwCY2EwIBcNMjYxMTIwMTM0MzU5WhgPMjEyNjEwMjcxMzQzNTlaMDAx\n\
FTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lzdGVtOm5vZGU6bjEw\n\
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR/E87iOq+JRaCQDJk3r1NiZ1u2j7vi\n\
MuCGsdM9dLdI7YxDBpKtBMPR1CBKBgjG+wmG6N2/cuSuDS/jBecWYKMRMA0GCSqG\n\
SIb3DQEBCwUAA4IBAQBbPPiESK38D8HfXgQS9df3U5MLdn+Hs9HMDAE+XYZjhZUW\n\
uCpg2Saam9h4f65k5GSM3oj0wACnbb3WcAMBm5yGLje+Ezkxnzp7EX2x+HB1tgZX\n\
J/SCm51X6+9d+qMrio8D6t7YhzgFDVWKGq8JuaqqHUQ8cBprbFVJUpiuoVu47kAT\n\
Eq9GCk9LfNS17ZSNHSRK3pKFbKWnfycV/P6zA3dn88HblMylPF2rkAA4+ErLILEV\n\
Vwf+X2TlLLl3hqfCEcgwVpTI56c5v2meAzWHx1QbAMsCttiE+qPusJyKlb7kppAS\n\
Lu9xd4leotV1R09SCq5Ssgt3z0KAzR3G4XpH5ETi\n\
-----END CERTIFICATE-----\n";
const VERSION_1_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXK/XDTZcmdiVr8Qo\n\
tR+7YjRted3FyXgrbCN3PdAeoMuhRANCAAR/E87iOq+JRaCQDJk3r1NiZ1u2j7vi\n\
MuCGsdM9dLdI7YxDBpKtBMPR1CBKBgjG+wmG6N2/cuSuDS/jBecWYKMR\n\
-----END PRIVATE KEY-----\n";
