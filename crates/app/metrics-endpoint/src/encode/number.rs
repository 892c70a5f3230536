//! Numbers as Go writes them: `strconv.FormatFloat(v, 'g', -1, 64)`.

use std::fmt::Write;

/// Appends `value`: shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e6 on:
/// `604800`, `2.592e+06`, `+Inf`.
pub(crate) fn go_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    } else if value == 0.0 {
        out.push_str(if value.is_sign_negative() { "-0" } else { "0" });
    } else {
        finite(out, value);
    }
}

fn finite(out: &mut String, value: f64) {
    // Rust's `e` form has the same shortest digits: `2.592e6`.
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        let written = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        debug_assert!(written.is_ok(), "writing to a string");
    } else {
        let written = write!(out, "{value}");
        debug_assert!(written.is_ok(), "writing to a string");
    }
}
