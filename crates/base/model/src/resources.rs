//! Requests, limits and QoS of a pod.
