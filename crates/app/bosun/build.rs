//! Where the linker puts each function: those that a node runs lie side by side (`cargo xtask order`), so that the others
//! are not in memory beside them.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=order.txt");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    // The compiler brings lld as the linker of this target; another linker knows no such option.
    let own_linker = std::env::var_os("RUSTC_LINKER").is_none() && is("CARGO_ENCODED_RUSTFLAGS", "");
    if own_linker && is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        let list = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("order.txt");
        println!("cargo::rustc-link-arg-bin=bosun=-Wl,--symbol-ordering-file={}", list.display());
        // A name that is no more costs nothing; `cargo xtask bench` says when they are many.
        println!("cargo::rustc-link-arg-bin=bosun=-Wl,--no-warn-symbol-ordering");
    }
    Ok(())
}
