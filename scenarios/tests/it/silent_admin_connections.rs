//! The health check is answered despite many silent connections to the admin address.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let mut silent: Vec<Client> = (0..100).map(|_| Client::to(scene.admin())).collect();
    for client in silent.iter_mut().skip(60) {
        client.send("GET /stats HTTP/1.1\r\nHost: local");
    }
    scene
        .get_at(scene.admin(), "localhost", "/healthz")
        .is(200)
        .says("ok\n");
    // Connection 62 can still complete its request, so the time limit has not closed the connections. Foxy
    // has closed only the oldest connections.
    silent[62].send("host\r\n\r\n").answer().is(200);
    assert_eq!(silent[0].send("GET /stats").answer().status, 0);
}
