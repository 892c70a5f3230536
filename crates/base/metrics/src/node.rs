//! The start of the node, in seconds by part, and when the machine went down.

use crate::family::gauge;

families! { MAIN;
    /// From the start of the process to the registered, ready node.
    STARTUP: Gauge = gauge("kubelet_node_startup_duration_seconds", "Whole start of the node, in seconds.");
    /// Before the daemon began its work.
    PRE_KUBELET: Gauge = gauge(
        "kubelet_node_startup_pre_kubelet_duration_seconds", "From boot to the start of the daemon, in seconds.");
    /// From there to the first attempt to register.
    PRE_REGISTRATION: Gauge = gauge(
        "kubelet_node_startup_pre_registration_duration_seconds", "From the start of the daemon to registration, in seconds.");
    /// From there to the accepted Node object.
    REGISTRATION: Gauge = gauge(
        "kubelet_node_startup_registration_duration_seconds", "Registration of the node, in seconds.");
    /// From there to Ready.
    POST_REGISTRATION: Gauge = gauge(
        "kubelet_node_startup_post_registration_duration_seconds", "From registration to a ready node, in seconds.");
    /// When the machine began to go down last; 0: never.
    SHUTDOWN_START: Gauge = gauge(
        "kubelet_graceful_shutdown_start_time_seconds", "Begin of the latest shutdown of the machine, in Unix seconds.");
    /// When all pods had had their time for it; 0: not yet.
    SHUTDOWN_END: Gauge = gauge(
        "kubelet_graceful_shutdown_end_time_seconds", "End of the latest shutdown's time for pods, in Unix seconds.");
}
