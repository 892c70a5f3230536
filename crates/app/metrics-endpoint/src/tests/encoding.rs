use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderValue};

use crate::encode::{Form, go_float, takes_gzip};

#[test]
fn numbers_read_as_go_writes_them() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.005, "0.005"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e-8, "1e-08"),
        (604_800.0, "604800"),
        (123_456.789, "123456.789"),
        (999_999.5, "999999.5"),
        (1_000_000.0, "1e+06"),
        (2_592_000.0, "2.592e+06"),
        (1_795_164_697.06, "1.79516469706e+09"),
        (-1.5e300, "-1.5e+300"),
        (298.023_223_876_953_1, "298.0232238769531"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
    ] {
        let mut out = String::new();
        go_float(&mut out, value);
        assert_eq!(out, text);
    }
}

#[test]
fn the_form_is_what_the_client_likes_best_and_text_when_in_doubt() {
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    for (accept, form) in [
        ("", Form::Text),
        ("*/*", Form::Text),
        ("application/json", Form::Text),
        ("text/plain;version=0.0.4", Form::Text),
        ("application/openmetrics-text", Form::OpenMetrics),
        ("application/openmetrics-text; version=2.0.0", Form::Text),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.6", Form::Text),
        ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.6", Form::OpenMetrics),
        ("application/openmetrics-text;q=0", Form::Text),
        (protobuf, Form::Protobuf),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", Form::Text),
        (&format!("{protobuf};q=0.7,application/openmetrics-text;version=0.0.1;q=0.5,*/*;q=0.1"), Form::Protobuf),
    ] {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        }
        assert_eq!(Form::negotiate(&headers), form, "{accept}");
    }
}

#[test]
fn gzip_is_for_those_who_take_it() {
    for (accept, takes) in
        [("gzip", true), ("deflate, gzip;q=0.5", true), ("gzip;q=0", false), ("identity", false), ("br", false)]
    {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accept))]);
        assert_eq!(takes_gzip(&headers), takes, "{accept}");
    }
    assert!(!takes_gzip(&HeaderMap::new()));
}
