//! A step as a span, named as a kubelet names its own: with each of them begins a trace.

use model::core::Pod;
use trace::{Kind, Span};

use crate::job::Failure;
use crate::machine::Step;

/// The span of a step on a pod. `operation`: what metrics call it.
pub(crate) fn begin(step: Step, pod: Option<&Pod>, operation: &'static str) -> Span {
    let name = match step {
        Step::Rest => return Span::none(),
        Step::Sync => "syncPod",
        Step::Terminate | Step::TerminateOrphan => "syncTerminatingPod",
        Step::CleanUp => "syncTerminatedPod",
    };
    let mut span = trace::root(|| name.into(), Kind::Internal, None);
    if let Some(pod) = pod {
        let (namespace, name) = (model::pod::namespace(pod), model::pod::name(pod));
        span.set("k8s.pod.uid", || model::pod::uid(pod).as_str().to_owned());
        span.set("k8s.pod", || format!("{namespace}/{name}"));
        span.set("k8s.pod.name", || name);
        span.set("k8s.namespace.name", || namespace);
    }
    if step == Step::Sync {
        span.set("k8s.pod.update_type", || operation);
    }
    span
}

/// Runs a step within its span.
pub(crate) async fn run<T, M>(
    mut span: Span,
    step: impl Future<Output = (Result<T, Failure>, M)>,
) -> (Result<T, Failure>, M) {
    let out = span.run(step).await;
    if let (Err(failure), _) = &out {
        span.fail(|| failure.message.clone());
    }
    out
}
