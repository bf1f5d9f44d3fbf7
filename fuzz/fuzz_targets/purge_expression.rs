//! Purge expressions, and the keys that they are matched against.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_store::fuzzing::purge_expression(data);
});
