use super::*;

#[test]
fn an_error_stream_tells_how_the_command_ended() {
    let exit = |causes: &str| {
        format!(r#"{{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{{"causes":{causes}}}}}"#)
    };
    let code = exit(r#"[{"reason":"Other","message":"9"},{"reason":"ExitCode","message":"3"}]"#);
    for (text, want) in [
        ("", Outcome::Success),
        (r#"{"metadata":{},"status":"Success"}"#, Outcome::Success),
        (&code, Outcome::Exit(3)),
        (r#"{"status":"Failure","message":"no such file"}"#, Outcome::Failed("no such file".into())),
        (&exit("[]"), Outcome::Failed("error stream protocol error: no ExitCode cause given".into())),
        (
            &exit(r#"[{"reason":"ExitCode","message":"300"}]"#),
            Outcome::Failed("error stream protocol error: invalid exit code value".into()),
        ),
        ("{}", Outcome::Failed("error stream protocol error: unknown error".into())),
        ("oops", Outcome::Failed("error stream protocol error: \"oops\"".into())),
    ] {
        assert_eq!(Outcome::parse(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn what_is_told_to_a_client_is_understood_by_one() {
    for outcome in [Outcome::Success, Outcome::Exit(137)] {
        assert_eq!(Outcome::parse(&outcome.to_json()), outcome);
    }
    let failed = Outcome::parse(&Outcome::Failed("dial".into()).to_json());
    assert_eq!(failed, Outcome::Failed("Internal error occurred: dial".into()));
}
