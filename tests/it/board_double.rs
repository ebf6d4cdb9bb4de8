//! The double of a Superpipeline board keeps the board's rules: whatever is tested against it
//! is worth no more than that.

use std::process::{Command, Stdio};

use crate::support::installed;

#[tokio::test]
async fn the_double_of_a_board_keeps_the_rules_of_one() {
    let python = installed().await.python();
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/board/test_superpipeline.py"
    );
    let mut command = Command::new(python);
    // Without writing compiled files beside the sources.
    command.args(["-B", rules]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // With nothing to run it succeeds as well, on an older Python.
    assert!(!told.contains("Ran 0 tests"), "{told}");
}
