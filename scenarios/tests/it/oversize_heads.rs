//! Requests whose head exceeds a limit are refused with the status 431.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .config("[limits]\nhead = \"8KiB\"\nfields = 20")
        .begin();
    let long = "x".repeat(9000);
    scene.get_with("/a", &format!("X-Long: {long}\r\n")).is(431);
    scene.get_with("/a", &"X-Many: 1\r\n".repeat(30)).is(431);
    scene.origin.was_asked(0);
}
