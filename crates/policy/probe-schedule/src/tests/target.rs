use crate::target::{Target, aim, port};
use model::core::{
    Container, ContainerPort, EnvVar, ExecAction, GRPCAction, HTTPGetAction, HTTPHeader, Probe, TCPSocketAction,
};
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::probe::NetTarget;

const AGENT: &str = "kube-probe/1.36";

fn container() -> Container {
    let port = |name: &str, n| ContainerPort { name: Some(name.into()), container_port: n, ..ContainerPort::default() };
    let env = |name: &str, value: Option<&str>| EnvVar {
        name: name.into(),
        value: value.map(str::to_owned),
        ..EnvVar::default()
    };
    Container {
        name: "m".into(),
        ports: Some(vec![port("web", 8080), port("bad", 0)]),
        env: Some(vec![env("HOME", Some("/root")), env("REF", Some("$(HOME)")), env("FROM", None)]),
        ..Container::default()
    }
}

fn get(port: IntOrString) -> HTTPGetAction {
    HTTPGetAction { port, path: Some("/healthz?x=1".into()), ..HTTPGetAction::default() }
}

struct Get {
    tls: bool,
    host: String,
    port: u16,
    path: String,
    headers: Vec<(String, String)>,
    host_header: Option<String>,
}

fn http(action: HTTPGetAction) -> Get {
    let probe = Probe { http_get: Some(action), ..Probe::default() };
    match aim(&probe, &container(), "10.0.0.1", AGENT).unwrap() {
        Target::Net(NetTarget::Http { tls, host, port, path, headers, host_header }) => {
            Get { tls, host, port, path, headers, host_header }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ports_are_numbers_names_or_numbers_as_text() {
    let text = |s: &str| IntOrString::String(s.into());
    let rows = [
        (IntOrString::Int(80), Ok(80)),
        (IntOrString::Int(0), Err("invalid port number: 0".to_owned())),
        (IntOrString::Int(65_536), Err("invalid port number: 65536".to_owned())),
        (text("web"), Ok(8080)),
        (text("bad"), Err("invalid port number: 0".to_owned())),
        (text("81"), Ok(81)),
        (text("nope"), Err("couldn't find port: \"nope\" for container m".to_owned())),
    ];
    for (value, want) in rows {
        assert_eq!(port(&value, &container()), want, "{value:?}");
    }
}

#[test]
fn http_goes_to_the_pod_unless_told_otherwise() {
    let t = http(get(IntOrString::Int(80)));
    assert_eq!((t.tls, t.host.as_str(), t.port, t.path.as_str()), (false, "10.0.0.1", 80, "/healthz?x=1"));
    let t = http(HTTPGetAction {
        host: Some("example.org".into()),
        scheme: Some("HTTPS".into()),
        path: Some("relative".into()),
        ..get(IntOrString::String("web".into()))
    });
    assert_eq!((t.tls, t.host.as_str(), t.port, t.path.as_str()), (true, "example.org", 8080, "/relative"));
    assert_eq!(http(HTTPGetAction { path: None, ..get(IntOrString::Int(80)) }).path, "/");
}

#[test]
fn http_headers() {
    let with = |headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(n, v)| HTTPHeader { name: (*n).into(), value: (*v).into() }).collect();
        http(HTTPGetAction { http_headers: Some(headers), ..get(IntOrString::Int(80)) })
    };
    let pairs = |t: &Get| t.headers.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>();
    assert_eq!(pairs(&with(&[])), ["User-Agent=kube-probe/1.36", "Accept=*/*"]);
    assert_eq!(pairs(&with(&[("user-agent", "me"), ("Accept", "")])), ["user-agent=me"]);
    let t = with(&[("X", "1"), ("X", "2"), ("Host", "web.example")]);
    assert_eq!(pairs(&t)[..2], ["X=1", "X=2"]);
    assert_eq!(t.host_header.as_deref(), Some("web.example"));
}

#[test]
fn exec_expands_literal_environment_only() {
    let words = ["$(HOME)/x", "$$(HOME)", "$(MISSING)", "$(REF)", "[$(FROM)]", "a$b", "$(open", "$"];
    let exec = ExecAction { command: Some(words.iter().map(|w| (*w).to_owned()).collect()) };
    let probe = Probe { exec: Some(exec), ..Probe::default() };
    let Target::Exec { command } = aim(&probe, &container(), "10.0.0.1", AGENT).unwrap() else { panic!("not exec") };
    assert_eq!(command, ["/root/x", "$(HOME)", "$(MISSING)", "$(HOME)", "[]", "a$b", "$(open", "$"]);
}

#[test]
fn tcp_and_grpc() {
    let tcp = |host: Option<&str>| Probe {
        tcp_socket: Some(TCPSocketAction { host: host.map(str::to_owned), port: IntOrString::Int(5432) }),
        ..Probe::default()
    };
    let to = |host: &str| Ok(Target::Net(NetTarget::Tcp { host: host.into(), port: 5432 }));
    assert_eq!(aim(&tcp(None), &container(), "10.0.0.1", AGENT), to("10.0.0.1"));
    assert_eq!(aim(&tcp(Some("db")), &container(), "10.0.0.1", AGENT), to("db"));
    let grpc = Probe { grpc: Some(GRPCAction { port: 9000, service: None }), ..Probe::default() };
    let want =
        NetTarget::Grpc { host: "10.0.0.1".into(), port: 9000, service: String::new(), user_agent: AGENT.to_owned() };
    assert_eq!(aim(&grpc, &container(), "10.0.0.1", AGENT), Ok(Target::Net(want)));
}

#[test]
fn a_probe_without_a_handler_is_an_error() {
    assert_eq!(aim(&Probe::default(), &container(), "", AGENT), Err("missing probe handler for m".to_owned()));
}
