//! CONNECT opens a tunnel only to permitted ports.

use std::io::{Read, Write};
use std::net::TcpListener;

use foxy_scenarios::*;

#[test]
fn story() {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = echo.accept().unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
    });
    let scene = Scene::with()
        .config(&format!("[access]\nconnect_ports = [{port}]"))
        .begin();
    let connect =
        |port| format!("CONNECT origin.test:{port} HTTP/1.1\r\nHost: origin.test:{port}\r\n\r\n");
    scene
        .send_raw(&connect(25))
        .is(403)
        .mentions("connect-port");
    let mut client = scene.client();
    client.send(connect(port)).answer_to("CONNECT").is(200);
    client.send("hello");
    assert_eq!(client.exactly(5), b"hello");
}
