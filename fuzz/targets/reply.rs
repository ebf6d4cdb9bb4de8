#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| matrix_elicit_fuzz::reading::check(input));
