//! The operator and the authors: contents change, with a purge and without.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_http1::Url;
use foxy_store::{Places, Purge, PurgeKind};
use tokio::time::sleep;

use super::content::PAGES;
use super::world::{Barrier, Cause, World};
use crate::Proxy;

/// Works until the process ends.
pub(super) async fn run(world: Rc<World>, proxy: Arc<Proxy>, mut rng: Rng) {
    while !world.is_over.get() {
        sleep(Duration::from_millis(rng.below(3000))).await;
        let page = match rng.below(2) {
            0 => (world.profile.hot + rng.below(6) as usize) % PAGES.len(),
            _ => rng.below(PAGES.len() as u64) as usize,
        };
        if rng.chance(0.8) {
            world.publish(page);
        }
        match rng.below(10) {
            0..4 => purge(&world, &proxy, page).await,
            4..6 => purge_many(&world, &proxy, page, &mut rng).await,
            _ => {}
        }
    }
}

fn url(page: usize) -> String {
    format!("http://origin.sim/{}", PAGES[page].name)
}

async fn purge(world: &World, proxy: &Proxy, page: usize) {
    let serial = world.next_serial();
    let text = url(page);
    let Ok(url) = Url::parse(text.as_bytes()) else {
        return;
    };
    world.trace.note(&format!("purge {text}"));
    let purged = proxy.purge("forward", &url).await;
    world.counts.add("purges");
    world.bar(Barrier {
        page,
        cause: Cause::Purge,
        serial,
        since: world.trace.now(),
        durable: purged.durable,
        body: None,
    });
}

async fn purge_many(world: &World, proxy: &Proxy, page: usize, rng: &mut Rng) {
    let text = |text: &str| text.as_bytes().to_vec();
    let (kind, text) = match rng.below(5) {
        0 => (PurgeKind::Tag, text("news")),
        1 => (PurgeKind::All, Vec::new()),
        2 => (PurgeKind::Host, text("origin.sim")),
        3 => (PurgeKind::Prefix, text(&url(page))),
        _ => (PurgeKind::Url, text(&url(page))),
    };
    let soft = rng.chance(0.3);
    let serial = world.next_serial();
    let purge = Purge {
        kind,
        text,
        partition: String::new(),
        soft,
    };
    world.trace.note(&format!("purge {purge:?}"));
    let Ok(began) = proxy.purge_many(&purge, Places::Reserved).await else {
        return;
    };
    world.counts.add("purges of many");
    let covered = |at: usize| match kind {
        PurgeKind::Tag => PAGES[at].fields.contains("news"),
        PurgeKind::Prefix => PAGES[at].name.starts_with(PAGES[page].name),
        PurgeKind::Url => at == page,
        _ => true,
    };
    for page in (0..PAGES.len()).filter(|page| covered(*page)) {
        world.bar(Barrier {
            page,
            cause: if soft { Cause::SoftPurge } else { Cause::Purge },
            serial,
            since: world.trace.now(),
            durable: began.durable,
            body: None,
        });
    }
}
