//! Chunked bodies. The decoded bytes and the end must not depend on the way in which the input is split.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    foxy_http1::fuzzing::chunked(data);
});
