//! Lifecycle hooks (pod-lifecycle 5.10).

use std::time::Duration;

use container_config::gotext::quote;
use contract::runtime::{CallErrorKind, ExecSync};
use model::ContainerId;
use model::core::{Container, HTTPGetAction, LifecycleHandler};
use model::event::EventType;
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use ports::hook::{HTTP_TO_HTTPS, HookRequest};

use crate::job::{Job, REBUILT};
use crate::measure::SleepHook;

/// As servers know a kubelet's hooks.
const USER_AGENT: &str = "kube-lifecycle/1.36";

impl Job {
    /// Runs one handler to its end. The text of a failure may hold the hook's output: it goes into the container's waiting
    /// message, never into an event.
    pub(crate) async fn run_hook(
        &self,
        handler: &LifecycleHandler,
        container: &Container,
        id: &ContainerId,
    ) -> Result<(), String> {
        if let Some(exec) = &handler.exec {
            let command = exec.command.clone().unwrap_or_default();
            let shown = command.join(" ");
            let failed = |(e, output): (String, String)| {
                self.failure(&format!("Exec lifecycle hook ([{shown}])"), container, &e)
                    + &format!(", message: {}", quote(&output))
            };
            return self.exec_hook(command, id).await.map_err(failed);
        }
        if let Some(get) = &handler.http_get {
            let what = format!("HTTP lifecycle hook ({})", get.path.as_deref().unwrap_or_default());
            return self.http_hook(get, container).await.map_err(|e| self.failure(&what, container, &e));
        }
        if let Some(sleep) = &handler.sleep {
            let mut hook = SleepHook(true);
            tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0))).await;
            hook.0 = false;
            return Ok(());
        }
        Err("Cannot run handler: invalid handler: no action that this node can run".to_owned())
    }

    fn failure(&self, what: &str, container: &Container, e: &str) -> String {
        let (name, pod) = (quote(&container.name), quote(&model::pod::describe(&self.pod)));
        format!("{what} for Container {name} in Pod {pod} failed - error: {e}")
    }

    /// Runs a command; a failure comes with what the command wrote.
    async fn exec_hook(&self, command: Vec<String>, id: &ContainerId) -> Result<(), (String, String)> {
        let shown = command.join(" ");
        let ask = ExecSync { uid: self.uid.clone(), container: id.clone(), command, timeout: Duration::ZERO };
        let mut ran = self.call(ask.clone()).await;
        if ran.as_ref().is_err_and(|e| self.got_lost(e)) {
            // Commands in general are not repeated. A hook is promised at least once: a call that got lost is made again.
            tokio::time::sleep(REBUILT).await;
            ran = self.call(ask).await;
        }
        let outcome = match ran {
            Ok(outcome) => outcome,
            Err(e) if e.kind == CallErrorKind::Lost => {
                tracing::warn!(uid = %self.uid, container = %id, error = %e, "whether the hook ran is not known");
                return Ok(());
            }
            Err(e) if e.kind == CallErrorKind::Timeout => {
                return Err((format!("command timed out: {} timed out after 0s", quote(&shown)), String::new()));
            }
            Err(e) => return Err((e.to_string(), String::new())),
        };
        if outcome.exit_code == 0 {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let e = format!("command '{shown}' exited with {}: {stderr}", outcome.exit_code);
        Err((e, String::from_utf8_lossy(&outcome.stdout).into_owned() + &stderr))
    }

    async fn http_hook(&self, get: &HTTPGetAction, container: &Container) -> Result<(), String> {
        let host = match get.host.as_deref().filter(|h| !h.is_empty()) {
            Some(host) => host.to_owned(),
            None => self.own_ip().await?,
        };
        let request = HookRequest {
            scheme: get.scheme.as_deref().unwrap_or("HTTP").to_ascii_lowercase(),
            host,
            port: port_number(&get.port, container)?,
            path: get.path.clone().unwrap_or_default(),
            headers: headers(get),
        };
        let Err(e) = self.deps.http.get(request.clone()).await else { return Ok(()) };
        if !e.contains(HTTP_TO_HTTPS) {
            return Err(e);
        }
        self.http_instead(request).await.map_err(|_| e)
    }

    /// A hook that says HTTPS to a server of plain HTTP worked as long as nobody looked at the scheme.
    async fn http_instead(&self, mut request: HookRequest) -> Result<(), String> {
        "http".clone_into(&mut request.scheme);
        request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        let HookRequest { host, port, .. } = &request;
        let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        self.deps.http.get(request).await?;
        metrics::lifecycle::HTTP_FALLBACKS.inc();
        let text = format!("request to HTTPS lifecycle hook {place} got HTTP response, retry with HTTP succeeded");
        self.event(EventType::Warning, "LifecycleHTTPFallback", text);
        Ok(())
    }

    /// The pod's address as the runtime has it now; a pod of the host's network is reached at the node's.
    async fn own_ip(&self) -> Result<String, String> {
        let observed = self.observe(false).await.map_err(|e| e.to_string())?;
        let ip = observed.ips.first().or(self.deps.config.node.host_ips.first());
        ip.map(ToString::to_string).ok_or_else(|| "failed to find networking container".to_owned())
    }
}

/// Those of the manifest; who asks, and what is taken, where it does not say.
fn headers(get: &HTTPGetAction) -> Vec<(String, String)> {
    let given = get.http_headers.iter().flatten();
    let mut headers: Vec<(String, String)> = given.map(|h| (h.name.clone(), h.value.clone())).collect();
    for (name, value) in [("User-Agent", USER_AGENT), ("Accept", "*/*")] {
        if !headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    headers
}

fn port_number(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(n) => *n,
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|p| p.name.as_deref() == Some(name));
            match named {
                Some(p) => p.container_port,
                None => {
                    name.parse().map_err(|_| format!("couldn't find port: {name} in container {}", container.name))?
                }
            }
        }
    };
    u16::try_from(number).ok().filter(|n| *n > 0).ok_or_else(|| format!("port {number} is not in 1..65535"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::core::ContainerPort;

    #[test]
    fn headers_say_who_asks_unless_the_manifest_does() {
        let of = |given: &[(&str, &str)]| {
            let listed = given.iter().map(|(n, v)| model::core::HTTPHeader { name: (*n).into(), value: (*v).into() });
            let get = HTTPGetAction { http_headers: Some(listed.collect()), ..HTTPGetAction::default() };
            headers(&get).iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), ["User-Agent=kube-lifecycle/1.36", "Accept=*/*"]);
        assert_eq!(of(&[("user-agent", "me"), ("X", "1"), ("accept", "")]), ["user-agent=me", "X=1", "accept="]);
    }

    #[test]
    fn ports_are_found_by_number_by_name_and_as_numeric_text() {
        let ports = vec![ContainerPort { name: Some("web".into()), container_port: 8080, ..Default::default() }];
        let container = Container { name: "c".into(), ports: Some(ports), ..Default::default() };
        let table = [
            (IntOrString::Int(80), Ok(80)),
            (IntOrString::String("web".into()), Ok(8080)),
            (IntOrString::String("81".into()), Ok(81)),
            (IntOrString::Int(0), Err("port 0 is not in 1..65535".to_owned())),
            (IntOrString::Int(70000), Err("port 70000 is not in 1..65535".to_owned())),
            (IntOrString::String("db".into()), Err("couldn't find port: db in container c".to_owned())),
        ];
        for (port, expected) in table {
            assert_eq!(port_number(&port, &container), expected, "{port:?}");
        }
    }
}
