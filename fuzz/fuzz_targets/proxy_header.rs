//! The parser of the PROXY protocol's header, which may be at the beginning of a connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_proxy::fuzzing::proxy_header(data);
});
