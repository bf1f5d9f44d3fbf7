//! The regular expressions of purges, and the keys with which they are compared.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_store::fuzzing::purge_expression(data);
});
