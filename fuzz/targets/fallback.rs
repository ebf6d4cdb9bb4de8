#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| matrix_elicit_fuzz::fallback::check(input));
