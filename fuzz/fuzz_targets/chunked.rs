//! The decoder of chunked bodies. The decoded bytes and the end must not depend on the pieces in which the
//! input arrives.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    foxy_http1::fuzzing::chunked(data);
});
