//! Chunked bodies: the same bytes and the same end, however they arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    foxy_http1::fuzzing::chunked(data);
});
