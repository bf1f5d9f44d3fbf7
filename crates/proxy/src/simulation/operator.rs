//! The simulated operator and the authors of pages. They change contents, with and without a purge, and
//! reload the settings.

use std::rc::Rc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_http1::Url;
use foxy_store::{Places, Purge, PurgeKind};
use tokio::time::sleep;

use super::life::Life;
use super::settings::Settings;
use super::spot::{Part, Spot};
use super::world::{Barrier, Cause, World};

/// Changes and purges pages until the process ends.
pub(super) async fn run(world: Rc<World>, life: Rc<Life>, mut rng: Rng) {
    while !world.is_over.get() {
        sleep(Duration::from_millis(rng.below(3000))).await;
        let spot = draw(&world, &mut rng);
        if rng.chance(0.8) {
            world.publish(spot);
        }
        match rng.below(10) {
            0..4 => purge(&world, &life, spot).await,
            4..6 => purge_many(&world, &life, spot, &mut rng).await,
            _ => {}
        }
    }
}

/// Reloads the settings until the process ends.
pub(super) async fn reload(world: Rc<World>, life: Rc<Life>, mut rng: Rng) {
    while !world.is_over.get() {
        sleep(Duration::from_millis(500 + rng.below(12_000))).await;
        let (_, old) = life.now();
        let settings = match rng.below(4) {
            // This reload changes only settings that do not affect keys or sharing.
            0 => Settings::draw(&mut rng).deciding_as(old),
            _ => Settings::draw(&mut rng),
        };
        let memory = world.profile.memory >> rng.below(2);
        world.trace.note(&format!("reload {settings:?}"));
        world.eras.begin(settings, None);
        life.reload(settings, memory).await;
        world.eras.apply(world.trace.now());
        world.trace.note("reloaded");
        world.counts.add(match settings.is_like(old) {
            true => "reloads that decide nothing",
            false => "reloads",
        });
    }
}

fn draw(world: &World, rng: &mut Rng) -> Spot {
    let part = match world.profile.sites {
        true => Part::ALL[rng.below(3) as usize],
        false => Part::Forward,
    };
    Spot::draw(&world.profile, part, rng)
}

async fn purge(world: &World, life: &Life, spot: Spot) {
    let (proxy, settings) = life.now();
    // The settings determine the key of the URL.
    let (serial, effective) = (world.next_serial(), settings.effective(spot));
    let text = spot.url();
    let Ok(url) = Url::parse(text.as_bytes()) else {
        return;
    };
    let part = spot.part.name();
    world.trace.note(&format!("purge {part} {text}"));
    let purged = proxy.purge(part, &url).await;
    world.counts.add("purges");
    world.bar(Barrier {
        spot: effective,
        cause: Cause::Purge,
        serial,
        since: world.trace.now(),
        durable: purged.durable,
        body: None,
    });
    let name = effective.page().name;
    let note = format!("purged {part} {name} before answer {serial}");
    world.trace.note(&note);
}

async fn purge_many(world: &World, life: &Life, spot: Spot, rng: &mut Rng) {
    let text = |text: &str| text.as_bytes().to_vec();
    let (kind, text) = match rng.below(5) {
        0 => (PurgeKind::Tag, text("news")),
        1 => (PurgeKind::All, Vec::new()),
        2 => (PurgeKind::Host, text(spot.part.origin())),
        3 => (PurgeKind::Prefix, text(&spot.plain().url())),
        _ => (PurgeKind::Url, text(&spot.url())),
    };
    let soft = rng.chance(0.3);
    let everywhere = rng.chance(0.5);
    let serial = world.next_serial();
    let purge = Purge {
        kind,
        text,
        partition: match everywhere {
            true => String::new(),
            false => spot.part.name().to_owned(),
        },
        soft,
    };
    world.trace.note(&format!("purge {purge:?}"));
    let (proxy, _) = life.now();
    let Ok(began) = proxy.purge_many(&purge, Places::Reserved).await else {
        return;
    };
    world.counts.add("purges of many");
    let covered = |at: Spot| {
        let here = everywhere || at.part == spot.part;
        here && match kind {
            PurgeKind::Tag => at.page().fields.contains("news"),
            PurgeKind::Prefix => at.url().starts_with(&spot.plain().url()),
            PurgeKind::Url => at.url() == spot.url(),
            PurgeKind::Host => at.part.origin() == spot.part.origin(),
            _ => true,
        }
    };
    for spot in (0..Spot::ALL).filter_map(Spot::of) {
        if covered(spot) {
            world.bar(Barrier {
                spot,
                cause: if soft { Cause::SoftPurge } else { Cause::Purge },
                serial,
                since: world.trace.now(),
                durable: began.durable,
                body: None,
            });
        }
    }
    let note = format!("purged many before answer {serial}");
    world.trace.note(&note);
}
