//! Purges under load. On a disk without faults, each purge is durable: it survives a power failure. A flood
//! of purges is refused.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Answer, Foxy, Origin, Stored};
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_proxy::{Access, Config, Role, Token};

const TOKEN: &str = "0123456789abcdef0123";

/// Purges of many objects need the operator's token.
fn config() -> Config {
    Config {
        access: Access {
            token: Token::new(TOKEN),
            ..Access::default()
        },
        ..Config::default()
    }
}

fn origin() -> Origin {
    Origin::start(|asked| {
        let fields = "Cache-Control: max-age=600\r\nSurrogate-Key: page\r\n";
        asked.reply("200 OK", fields, vec![b'x'; 30_000]);
        true
    })
}

fn purge(foxy: &Foxy, origin: &Origin, path: &str, fields: &str) -> Answer {
    foxy.ask(&format!(
        "PURGE http://{}{path} HTTP/1.1\r\nHost: x\r\nX-Foxy-Token: {TOKEN}\r\n{fields}\r\n",
        origin.authority()
    ))
}

#[test]
fn purges_beside_writes_are_all_durable() {
    let (stored, origin) = (Stored::start_as(config(), 16 << 20, 64 << 20, 2), origin());
    let (foxy, done) = (&stored.foxy, AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (origin, done) = (&origin, &done);
            scope.spawn(move || {
                for n in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    foxy.get(origin, &format!("/{client}/{n}"));
                }
            });
        }
        let purgers: Vec<_> = (0..3)
            .map(|purger| {
                let origin = &origin;
                scope.spawn(move || {
                    for n in 0..100 {
                        let fields = match n % 6 {
                            0 => format!("Surrogate-Key: tag-{purger}-{}\r\n", n % 10),
                            1 => "X-Purge-Method: prefix\r\n".to_owned(),
                            2 => "X-Purge-Method: host\r\n".to_owned(),
                            3 => "X-Purge-Method: soft\r\n".to_owned(),
                            4 => "xkey-softpurge: page\r\n".to_owned(),
                            _ => "X-Purge-Method: all\r\n".to_owned(),
                        };
                        let answer = purge(foxy, origin, &format!("/p{purger}"), &fields);
                        assert_eq!(answer.status, 200, "{fields}: {}", answer.head);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = purgers.into_iter().map(|purger| purger.join()).collect();
        done.store(true, Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok));
    });
}

#[test]
fn a_purge_that_a_power_cut_could_undo_is_no_success() {
    let (stored, origin) = (Stored::start_as(config(), 16 << 20, 64 << 20, 1), origin());
    let foxy = &stored.foxy;
    for path in ["/one", "/tagged"] {
        foxy.get(&origin, path);
    }
    stored.settle(0);
    let rule = FaultRule::new(OpClass::Flush, Fault::EIO);
    stored.disk.set_faults(FaultPlan::none().and(rule));
    for (path, fields) in [("/one", ""), ("/tagged", "Surrogate-Key: page\r\n")] {
        let answer = purge(foxy, &origin, path, fields);
        assert_eq!(answer.status, 500, "{path}: {}", answer.head);
        // The purge is not durable (it would not survive a crash). But it is effective until this process
        // ends.
        assert!(!foxy.get(&origin, path).cache().contains("hit"), "{path}");
    }
}

#[test]
fn a_flood_is_refused_and_takes_nothing_else_along() {
    let (foxy, origin) = (Foxy::start(Role::Forward, config(), 1), origin());
    foxy.get(&origin, "/kept");
    let refused = (0..1000).find_map(|n| {
        let fields = format!("Surrogate-Key: {n}-{}\r\n", "x".repeat(1500));
        let answer = purge(&foxy, &origin, "/", &fields);
        (answer.status != 200).then_some(answer)
    });
    let refused = refused.expect("some are refused");
    assert_eq!(refused.status, 429);
    assert!(refused.field("Retry-After").is_some());
    let mut expressions = (0..64).map(|n| {
        let path = format!("/re{n}");
        purge(&foxy, &origin, &path, "X-Purge-Method: regex\r\n").status
    });
    assert!(expressions.any(|status| status == 429));
    assert!(foxy.get(&origin, "/kept").cache().contains("hit"));
    // The limit on purges of many objects does not apply to a purge of one URL.
    assert_eq!(purge(&foxy, &origin, "/kept", "").status, 200);
    assert!(!foxy.get(&origin, "/kept").cache().contains("hit"));
}
