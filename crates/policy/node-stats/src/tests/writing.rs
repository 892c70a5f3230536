//! Prometheus text.

use model::Timestamp;

use crate::text::{Kind, Text, labels, push_number};

#[test]
fn numbers_are_written_as_go_writes_them() {
    let table = [
        (0.0, "0"),
        (1.0, "1"),
        (266_240.0, "266240"),
        (1_060_864.0, "1.060864e+06"),
        (1_000_000.0, "1e+06"),
        (1_636_114_432.0, "1.636114432e+09"),
        (4_893.579_755_936, "4893.579755936"),
        (0.010_745_953, "0.010745953"),
        (0.000_1, "0.0001"),
        (0.000_01, "1e-05"),
        (-2.5, "-2.5"),
        (-0.0, "-0"),
        (-1.5e300, "-1.5e+300"),
        (999_999.5, "999999.5"),
        (1.795_165_679_392_963_6e9, "1.7951656793929636e+09"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
    ];
    for (value, expected) in table {
        let mut text = String::new();
        push_number(&mut text, value);
        assert_eq!(text, expected);
    }
}

#[test]
fn label_values_are_escaped() {
    assert_eq!(labels(&[("a", "x\\y\"z\nw"), ("b", "")]), r#"a="x\\y\"z\nw",b="""#);
}

#[test]
fn a_family_shows_only_when_it_has_samples() {
    let mut text = Text::default();
    text.family("empty", "nothing", Kind::Gauge);
    text.family("some", "a thing", Kind::Counter);
    text.sample(["", "", ""], 1.0, None);
    text.sample(["a=\"b\"", "", "c=\"d\""], 2.5, Some(Timestamp(1_999_999)));
    text.sample(["", "", ""], 3.0, Some(Timestamp::ZERO));
    assert_eq!(text.done(), "# HELP some a thing\n# TYPE some counter\nsome 1\nsome{a=\"b\",c=\"d\"} 2.5 1\nsome 3\n");
}
