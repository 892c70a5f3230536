//! Who is not talked to at all; and a node that says the same thing twice.

use std::os::unix::fs::PermissionsExt;

use across::stub::manager_client::ManagerClient;
use actor::testing::run_real;
use contract::{ProbeManager, Role};
use futures::stream;
use hyper_util::rt::TokioIo;
use remote_manager::WhenAway;
use seam::v1::from_manager::What;
use seam::v1::{Begin, Call, FromManager, Start, ToManager, answer, to_manager};
use tokio::net::UnixStream;
use tonic::transport::{Endpoint, Uri};
use tower::service_fn;

use crate::world::World;

#[test]
fn one_that_is_not_wanted_is_told_why() {
    for (how, why) in [
        ("hash", "another contract (its version 6.6.6"),
        ("role", "it is a \"VolumeManager\", wanted is a ProbeManager"),
        ("silent", "no answer within 5 s"),
        ("garbage", "the first words failed"),
    ] {
        run_real(|kernel| async move {
            let world = World::new(kernel);
            let _program = world.liar(how);
            world.connect(WhenAway::Hold);
            world.away(why).await;
            assert_eq!(world.status().lives, 0);
        });
    }
}

#[test]
fn a_socket_in_a_folder_that_others_may_enter_is_not_talked_to() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.liar("rows");
        std::fs::set_permissions(world.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        world.connect(WhenAway::Hold);
        world.away("has mode 0755; nobody but its owner may enter it").await;
        std::fs::set_permissions(world.folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        world.up().await;
    });
}

/// Only root can give a folder away.
#[test]
fn a_socket_in_another_users_folder_is_not_talked_to() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root can give a folder to another user");
        return;
    }
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.liar("rows");
        std::os::unix::fs::chown(world.folder.path(), Some(65_534), None).unwrap();
        world.connect(WhenAway::Hold);
        world.away("belongs to user 65534").await;
        assert_eq!(world.status().lives, 0);
    });
}

/// The far side of a node, by hand.
async fn dial(world: &World) -> ManagerClient<tonic::transport::Channel> {
    actor::testing::spin_until("it listens", || world.is_listened_to()).await;
    let socket = world.socket();
    let connect = service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
    });
    ManagerClient::new(Endpoint::from_static("http://manager").connect_with_connector(connect).await.unwrap())
}

/// What it answers to frames, until as many answers have come.
async fn said(
    client: &mut ManagerClient<tonic::transport::Channel>,
    frames: Vec<to_manager::What>,
    answers: usize,
) -> Vec<What> {
    let hash = contract::seam::hash(&ProbeManager::DECLARATION);
    let begin = [to_manager::What::Begin(Begin { generation: 7, hash }), to_manager::What::Start(Start {})];
    let frames: Vec<_> = begin.into_iter().chain(frames).map(|what| ToManager { what: Some(what) }).collect();
    // The stream stays open, as a node's does.
    let frames = futures::StreamExt::chain(stream::iter(frames), stream::pending());
    let mut incoming = client.serve(frames).await.unwrap().into_inner();
    let mut heard = Vec::new();
    while heard.iter().filter(|w| matches!(w, What::Answer(_))).count() < answers {
        let Some(FromManager { what }) = incoming.message().await.unwrap() else { break };
        heard.extend(what);
    }
    heard
}

fn call(id: u64, key: &str) -> to_manager::What {
    let pod = serde_json::json!({"pod": {"metadata": {"uid": "u1", "name": "shows"}}});
    to_manager::What::Call(Call {
        id,
        message: "StartProbes".to_owned(),
        body: pod.to_string().into_bytes(),
        within_ms: 5_000,
        key: key.to_owned(),
        ..Call::default()
    })
}

#[test]
fn a_call_that_comes_twice_is_handled_once_and_answered_twice() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.honest();
        let mut client = dial(&world).await;
        let heard = said(&mut client, vec![call(1, "k1"), call(2, "k1"), call(3, "k2")], 3).await;
        let answers: Vec<u64> = heard
            .iter()
            .filter_map(|w| match w {
                What::Answer(a) => matches!(a.what, Some(answer::What::Body(_))).then_some(a.id),
                _ => None,
            })
            .collect();
        assert_eq!(answers, [1, 2, 3]);
        let last = heard.iter().rev().find_map(|w| match w {
            What::Rows(rows) => rows.rows.last().and_then(|r| r.value.clone()),
            _ => None,
        });
        let row = String::from_utf8(last.unwrap()).unwrap();
        assert!(row.contains("starts 2"), "two keys, two starts: {row}");
    });
}

#[test]
fn a_node_with_another_contract_is_turned_away_and_the_newest_node_is_served() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.honest();
        let mut client = dial(&world).await;
        let begin = to_manager::What::Begin(Begin { generation: 1, hash: "other".to_owned() });
        let frames = vec![ToManager { what: Some(begin) }, ToManager { what: Some(to_manager::What::Start(Start {})) }];
        let frames = futures::StreamExt::chain(stream::iter(frames), stream::pending());
        let mut incoming = client.serve(frames).await.unwrap().into_inner();
        assert!(incoming.message().await.unwrap().is_none(), "the stream ends");
        assert_eq!(said(&mut client, vec![call(1, "")], 1).await.len(), 3, "ready, a row, an answer");
        world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "shows").await, Ok(()));
    });
}
