use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderValue};

use crate::encode::{Form, takes_gzip};

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
