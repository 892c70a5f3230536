use proptest::prelude::*;

use super::*;

fn q(s: &str) -> Quantity {
    s.parse().unwrap()
}

#[test]
fn prints_the_canonical_form() {
    for (text, canonical) in [
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("0Mi", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.", "1"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1100m", "1100m"),
        ("100n", "100n"),
        ("1000n", "1u"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("-1.5", "-1500m"),
        ("1500", "1500"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("12000k", "12M"),
        ("1E", "1E"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("100e1", "1e3"),
        ("5e2", "500"),
        ("1e-3", "1e-3"),
        ("12e-1", "1200e-3"),
        ("1Ki", "1Ki"),
        ("512Ki", "512Ki"),
        ("1024Ki", "1Mi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1.1Ki", "1126400m"),
        ("1Ei", "1Ei"),
        ("-1Gi", "-1Gi"),
        ("100Ei", "9223372036854775807"),
        ("1e1000", "9223372036854775807e0"),
        ("1e-1000", "1e-9"),
    ] {
        let expected = canonical.strip_suffix("e0").unwrap_or(canonical);
        assert_eq!(q(text).to_string(), expected, "{text}");
    }
}

#[test]
fn refuses_what_is_not_a_quantity() {
    for (text, error) in [
        ("", QuantityError::Empty),
        ("-", QuantityError::NoDigits),
        (".", QuantityError::NoDigits),
        ("Mi", QuantityError::NoDigits),
        ("1mm", QuantityError::Suffix),
        ("1mi", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1ki", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1e+", QuantityError::Suffix),
        ("1e1.5", QuantityError::Suffix),
        ("1 Mi", QuantityError::Suffix),
        (" 1", QuantityError::NoDigits),
        ("1,5", QuantityError::Suffix),
        ("--1", QuantityError::NoDigits),
    ] {
        assert_eq!(text.parse::<Quantity>(), Err(error), "{text:?}");
    }
}

#[test]
fn value_and_milli_value_round_away_from_zero() {
    for (text, value, milli) in [
        ("0", 0, 0),
        ("1n", 1, 1),
        ("1m", 1, 1),
        ("500m", 1, 500),
        ("1001m", 2, 1001),
        ("1.0001", 2, 1001),
        ("2", 2, 2000),
        ("1Mi", 1_048_576, 1_048_576_000),
        ("64Mi", 67_108_864, 67_108_864_000),
        ("-1500m", -2, -1500),
        ("8Ei", i64::MAX, i64::MAX),
    ] {
        assert_eq!(q(text).value(), value, "{text}");
        assert_eq!(q(text).milli_value(), milli, "{text}");
    }
}

#[test]
fn compares_amounts_across_notations() {
    assert_eq!(q("1000m"), q("1"));
    assert_eq!(q("1e3"), q("1k"));
    assert_eq!(q("1Ki"), q("1024"));
    assert!(q("1Mi") > q("1M"));
    assert!(q("-1") < q("0"));
}

#[test]
fn a_sum_keeps_the_notation_of_its_first_amount_that_is_not_zero() {
    assert_eq!(q("1Gi").plus(q("1G")).to_string(), "2073741824");
    assert_eq!(q("1G").plus(q("1Gi")).to_string(), "2073741824");
    assert_eq!(Quantity::ZERO.plus(q("512Mi")).to_string(), "512Mi");
    assert_eq!(q("100m").plus(q("0.9")).to_string(), "1");
    assert_eq!(q("1").minus(q("250m")).to_string(), "750m");
    assert_eq!(q("8Ei").plus(q("8Ei")).value(), i64::MAX);
    assert_eq!(q("1").minus(q("2")).or_zero(), Quantity::ZERO);
}

#[test]
fn builders_print_in_their_notation() {
    assert_eq!(Quantity::from_bytes(1 << 30).to_string(), "1Gi");
    assert_eq!(Quantity::from_units(110).to_string(), "110");
    assert_eq!(Quantity::from_millis(250).to_api().0, "250m");
}

proptest! {
    #[test]
    fn the_printed_form_parses_to_the_same_amount_and_prints_alike(
        nanos in -MAX_NANOS..=MAX_NANOS,
        format in prop_oneof![Just(Format::DecimalSi), Just(Format::BinarySi), Just(Format::DecimalExponent)],
    ) {
        let a = Quantity { nanos, format };
        let b: Quantity = a.to_string().parse().unwrap();
        prop_assert_eq!(a, b);
        prop_assert_eq!(a.to_string(), b.to_string());
    }

    #[test]
    fn any_decimal_text_agrees_with_exact_arithmetic(whole in 0u64..100_000_000, fraction in 0u32..1000, suffix in 0usize..10) {
        let (name, exponent) = DECIMAL[suffix];
        let text = format!("{whole}.{fraction:03}{name}");
        let thousandths = i128::from(whole) * 1000 + i128::from(fraction);
        // In units of 10^-12, so that a thousandth of a nano is whole.
        let exact = thousandths * 10_i128.pow((exponent + 9) as u32);
        let expected = cap((exact + 999) / 1000);
        prop_assert_eq!(q(&text).nanos(), expected);
    }

    #[test]
    fn a_fraction_of_nothing_changes_nothing(whole in prop_oneof![any::<u64>(), 0u64..5000], sign in "-?",
        suffix in "(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]|e-?1[0-9]|e-?2[0-9])?") {
        prop_assert_eq!(q(&format!("{sign}{whole}{suffix}")), q(&format!("{sign}{whole}.0{suffix}")));
    }

    #[test]
    fn never_panics_on_any_text(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,40}[numkMGTPEKie0-9+-]{0,6}") {
        let _ = text.parse::<Quantity>();
    }
}
