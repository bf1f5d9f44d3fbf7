//! The workers of the simulated process. Each worker is a set of tasks. It has its own state, listeners and
//! connections, as on a separate thread.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::wire::Wire;
use super::world::World;
use crate::client::listen::listening::Listening;
use crate::client::listen::post::Post;
use crate::client::worker::{self, Open, count_connection};
use crate::state::local::Local;
use crate::{NoLog, Proxy, Renewals, Renewer, Serves};

/// A connection of a client, on its way to a listener.
pub(super) type Arrival = (Wire, SocketAddr);

/// The senders by which clients pass their connections to the listeners of one worker.
pub(super) type Doors = Vec<UnboundedSender<Arrival>>;

/// The listeners of a process, and their roles.
pub(super) type Listeners = Vec<(SocketAddr, Serves)>;

/// Starts the tasks of worker `index`. Returns the worker's listeners, and the sender for new settings.
pub(super) fn start(
    world: &Rc<World>,
    proxy: &Arc<Proxy>,
    (index, listeners): (usize, &Listeners),
    rng: Rng,
) -> (Doors, Renewer) {
    let local = Local::new(Arc::clone(proxy), index, Box::new(NoLog));
    worker::spawn_tasks(&local);
    let mut listening = Listening::new(local);
    let open = |(address, serves): &(SocketAddr, Serves)| {
        let post = listening.open_without_socket(*address, serves.clone());
        let (door, accepted) = mpsc::unbounded_channel();
        spawn_local(accept(Rc::clone(world), post, accepted));
        door
    };
    let doors = listeners.iter().map(open).collect();
    let (renewer, renewals) = Renewals::channel();
    spawn_local(renew(listening, renewals, rng));
    (doors, renewer)
}

/// Applies new settings. Each worker does this at a different time.
async fn renew(mut listening: Listening, mut renewals: Renewals, mut rng: Rng) {
    loop {
        let (renewal, applied) = renewals.next().await;
        sleep(Duration::from_millis(rng.below(40))).await;
        listening.renew(renewal);
        // This fails if the sender has stopped waiting.
        let _ = applied.send(());
    }
}

/// Accepts the connections of a listener in the same way as the product does with sockets, but without queues of
/// newcomers: the connections are served in the order of arrival.
async fn accept(world: Rc<World>, post: Rc<Post>, mut accepted: UnboundedReceiver<Arrival>) {
    loop {
        let local = post.current().local;
        local.entrance.room(&local).await;
        let Some((wire, peer)) = accepted.recv().await else {
            return;
        };
        let local = post.current().local;
        let counted = count_connection(&local, peer);
        let Some(guard) = counted.and_then(|counted| Open::count(&local, counted)) else {
            continue;
        };
        let post = Rc::clone(&post);
        let serving = spawn_local(async move {
            if guard.enter().await {
                let number = guard.client();
                Box::pin(worker::serve(&post, wire, (peer, number))).await;
            }
        });
        let world = Rc::clone(&world);
        spawn_local(async move {
            if serving.await.is_err_and(|error| error.is_panic()) {
                let text = "a connection's task has panicked";
                world.trace.wrong("liveness", text);
            }
        });
    }
}
