//! The `matrix-elicit` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    matrix_elicit::cli::main()
}
