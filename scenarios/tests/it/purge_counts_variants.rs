//! The answer to a purge of a URL contains the number of removed objects, including variants. After a
//! restart, the variants are counted in the background.

use foxy_scenarios::*;

const LANGUAGES: [&str; 3] = ["en", "de", "fr"];

fn visit(scene: &Scene) {
    for language in LANGUAGES {
        let field = format!("Accept-Language: {language}\r\n");
        scene.get_with("/a", &field).miss();
        scene.get_with("/a", &field).hit();
    }
}

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    let reply = Reply::ok("hello").max_age(3600);
    scene
        .origin
        .plays("/a", reply.field("Vary", "Accept-Language"));
    visit(&scene);
    scene
        .ask("PURGE", "/a", "")
        .is(200)
        .mentions("\"objects\": 3}");
    scene.ask("PURGE", "/a", "").is(404);
    visit(&scene);
    scene.settle();
    scene.restart();
    let purged = scene.ask("PURGE", "/a", "");
    purged
        .is(200)
        .mentions("\"objects\": 1, \"variants_counted_by\": ");
    let text = String::from_utf8_lossy(&purged.body).into_owned();
    let number = text.trim().trim_end_matches('}').rsplit(' ').next();
    let number: u64 = number.and_then(|n| n.parse().ok()).expect("a number");
    let counted = || {
        scene.foxy().wake_stores();
        let status = Client::to(scene.admin())
            .send(format!(
                "GET /purges/{number} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ))
            .answer();
        let text = String::from_utf8_lossy(&status.body).into_owned();
        text.contains("\"done\": true") && text.contains("\"objects\": 2")
    };
    scene.until("the other variants are counted", counted);
    visit(&scene);
}
