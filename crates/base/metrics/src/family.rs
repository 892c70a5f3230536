//! How a family is declared, registered and listed.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// What `/metrics` shows.
pub static MAIN: LazyLock<Families> = LazyLock::new(Families::default);
/// What `/metrics/probes` shows.
pub static PROBES: LazyLock<Families> = LazyLock::new(Families::default);
/// What `/metrics/slis` shows.
pub static SLIS: LazyLock<Families> = LazyLock::new(Families::default);

/// Kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Never falls.
    Counter,
    /// A reading.
    Gauge,
    /// Observations by size.
    Histogram,
}

impl Kind {
    /// As the `# TYPE` line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What is known of a family without a scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Full name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Help, stability first.
    pub help: String,
    /// Names of labels.
    pub labels: &'static [&'static str],
    /// Upper bounds, without +Inf; empty unless a histogram.
    pub buckets: Vec<f64>,
}

impl Declared {
    /// A family of that name.
    #[must_use]
    pub fn new(name: &'static str, kind: Kind, help: &str, labels: &'static [&'static str]) -> Self {
        let help = match stability(name) {
            Some(level) => format!("[{level}] {help}"),
            None => help.to_owned(),
        };
        Self { name, kind, help, labels, buckets: Vec::new() }
    }

    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help.clone())
    }

    fn histogram(&self) -> HistogramOpts {
        HistogramOpts::new(self.name, self.help.clone()).buckets(self.buckets.clone())
    }
}

/// What Kubernetes promises of a name (first word of the help text); nothing of names that are not its own.
#[must_use]
pub fn stability(name: &str) -> Option<&'static str> {
    match name {
        "kubernetes_healthcheck" | "kubernetes_healthchecks_total" => Some("STABLE"),
        "kubernetes_feature_enabled" | "registered_metrics_total" => Some("BETA"),
        _ if ["bosun_", "process_", "go_"].iter().any(|own| name.starts_with(own)) => None,
        _ => Some("ALPHA"),
    }
}

/// A registry that also tells what may come out of it.
#[derive(Debug, Default)]
pub struct Families {
    registry: Registry,
    declared: Mutex<Vec<Declared>>,
}

impl Families {
    pub(crate) fn add<T: Collector + Clone + 'static>(&self, (declared, family): (Declared, T)) -> T {
        self.list().push(declared);
        self.registry.register(Box::new(family.clone())).expect("each family has a name of its own");
        family
    }

    fn list(&self) -> MutexGuard<'_, Vec<Declared>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readings of now, by name; families without any series are absent.
    #[must_use]
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        self.registry.gather()
    }

    /// All families registered, by name.
    #[must_use]
    pub fn declared(&self) -> Vec<Declared> {
        let mut all = self.list().clone();
        all.sort_by_key(|d| d.name);
        all
    }
}

/// Statics of a module, each registered when first touched, and `declare`, which touches them all.
macro_rules! families {
    ($into:ident; $( $(#[$doc:meta])* $name:ident: $type:ident = $make:expr; )*) => {
        $(
            $(#[$doc])*
            pub static $name: std::sync::LazyLock<prometheus::$type> =
                std::sync::LazyLock::new(|| $crate::$into.add($make));
        )*
        pub(crate) fn declare() {
            $( std::sync::LazyLock::force(&$name); )*
        }
    };
}

const WELL_FORMED: &str = "names and labels of families are well formed; a test makes them all";

pub(crate) fn counter(name: &'static str, help: &str) -> (Declared, IntCounter) {
    let declared = Declared::new(name, Kind::Counter, help, &[]);
    let family = IntCounter::with_opts(declared.opts()).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn counters(name: &'static str, help: &str, labels: &'static [&'static str]) -> (Declared, IntCounterVec) {
    let declared = Declared::new(name, Kind::Counter, help, labels);
    let family = IntCounterVec::new(declared.opts(), labels).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn int_gauge(name: &'static str, help: &str) -> (Declared, IntGauge) {
    let declared = Declared::new(name, Kind::Gauge, help, &[]);
    let family = IntGauge::with_opts(declared.opts()).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn int_gauges(name: &'static str, help: &str, labels: &'static [&'static str]) -> (Declared, IntGaugeVec) {
    let declared = Declared::new(name, Kind::Gauge, help, labels);
    let family = IntGaugeVec::new(declared.opts(), labels).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn gauge(name: &'static str, help: &str) -> (Declared, Gauge) {
    let declared = Declared::new(name, Kind::Gauge, help, &[]);
    let family = Gauge::with_opts(declared.opts()).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn histogram(name: &'static str, help: &str, buckets: &[f64]) -> (Declared, Histogram) {
    let mut declared = Declared::new(name, Kind::Histogram, help, &[]);
    declared.buckets = buckets.to_vec();
    let family = Histogram::with_opts(declared.histogram()).expect(WELL_FORMED);
    (declared, family)
}

pub(crate) fn histograms(
    name: &'static str,
    help: &str,
    labels: &'static [&'static str],
    buckets: &[f64],
) -> (Declared, HistogramVec) {
    let mut declared = Declared::new(name, Kind::Histogram, help, labels);
    declared.buckets = buckets.to_vec();
    let family = HistogramVec::new(declared.histogram(), labels).expect(WELL_FORMED);
    (declared, family)
}

/// Upper bounds of histograms, in seconds unless said otherwise (interfaces 5.1).
pub mod buckets {
    /// What most have.
    pub const DEFAULT: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
    /// Starts of pods.
    pub const POD_START: &[f64] = &[
        0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0,
        600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
    ];
    /// Resizes of pods, in milliseconds.
    pub const RESIZE: &[f64] = &[
        10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 30000.0, 60000.0, 120_000.0, 300_000.0,
        600_000.0,
    ];
    /// Writing a status.
    pub const STATUS_SYNC: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
    /// Containers of a pod; a number.
    pub const CONTAINERS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0];
    /// Pulls.
    pub const IMAGE_PULL: &[f64] = &[
        1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0,
        2700.0, 3600.0,
    ];
    /// Lives of serving certificates.
    pub const ROTATION: &[f64] = &[
        60.0,
        3600.0,
        14_400.0,
        86_400.0,
        604_800.0,
        2_592_000.0,
        7_776_000.0,
        15_552_000.0,
        31_104_000.0,
        124_416_000.0,
    ];
    /// Requests to the API server.
    pub const REST: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
    /// Bodies to and from the API server, in bytes.
    pub const REST_BYTES: &[f64] =
        &[64.0, 256.0, 512.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];
    /// Volumes.
    pub const STORAGE: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
    /// Delegated authentication and authorization.
    pub const DELEGATED: &[f64] = &[0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];
    /// Parts of a pod's start.
    pub const PHASE: &[f64] =
        &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

    /// Runtime operations: 5 ms, each next 2.5 times the last.
    #[must_use]
    pub fn runtime() -> Vec<f64> {
        std::iter::successors(Some(0.005), |last| Some(last * 2.5)).take(14).collect()
    }
}
