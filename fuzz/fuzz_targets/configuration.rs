//! Configuration files. Each file must be accepted, or refused with reasons.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy::config::fuzzing::configuration(data);
});
