use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;

use actor::testing::poll_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;

/// What `accept` does next: fails like this, or has a connection.
type Script = Arc<Mutex<VecDeque<Option<io::Error>>>>;

/// A socket after a script; waits for ever at its end.
struct Scripted(Script);

impl Socket for Scripted {
    type Io = DuplexStream;
    type Peer = ();

    async fn accept(&self) -> io::Result<(DuplexStream, ())> {
        let next = self.0.lock().unwrap().pop_front();
        match next {
            None => std::future::pending().await,
            Some(None) => Ok((tokio::io::duplex(1).0, ())),
            Some(Some(error)) => Err(error),
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn address(&self) -> io::Result<()> {
        Ok(())
    }
}

const EMFILE: i32 = 24;

/// A machine that is out of file descriptors for so long, and then has a connection or nobody who waits.
fn out_of_files(lasting: Duration, then: Option<Option<io::Error>>) -> (Accepting, Listener<Scripted>) {
    let times = lasting.as_millis() / PAUSE.as_millis();
    let errors = (0..times).map(|_| Some(io::Error::from_raw_os_error(EMFILE)));
    let script = Script::new(Mutex::new(errors.chain(then).collect()));
    let accepting = Accepting::default();
    let unopened = || -> io::Result<Scripted> { panic!("a socket that listens is not opened anew") };
    (accepting.clone(), Listener::new(Scripted(script), "port".to_owned(), accepting, unopened))
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_descriptors_is_waited_for_and_unhealthy_when_that_takes_long() {
    let (accepting, listener) = out_of_files(Duration::from_secs(60), Some(None));
    let accepted = tokio::spawn(async move { listener.accept().await });
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(accepting.check(), Ok(()), "a short lack harms nobody");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let reason = accepting.check().unwrap_err();
    assert!(reason.starts_with("port takes no connections since 3") && reason.contains("os error 24"), "{reason}");
    tokio::time::timeout(Duration::from_secs(60), accepted).await.expect("a connection in the end").unwrap();
    assert_eq!(accepting.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_waits_any_more_nothing_fails_any_more() {
    let (accepting, listener) = out_of_files(Duration::from_secs(1), None);
    let nobody = tokio::time::timeout(Duration::from_secs(100), listener.accept()).await;
    assert!(nobody.is_err());
    assert_eq!(accepting.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn callers_who_gave_up_are_no_trouble() {
    let script = [Some(io::ErrorKind::ConnectionAborted.into()), None];
    let socket = Scripted(Arc::new(Mutex::new(script.into_iter().collect())));
    let accepting = Accepting::default();
    let listener = Listener::new(socket, "port".to_owned(), accepting.clone(), || Err(io::ErrorKind::Other.into()));
    let began = Instant::now();
    listener.accept().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// As a real socket breaks: `shutdown` of a listener makes `accept` fail for good.
#[tokio::test]
async fn a_socket_that_is_broken_is_opened_anew_at_its_address() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let other_end = socket2::SockRef::from(&socket).try_clone().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = opened.clone();
    let accepting = Accepting::default();
    let listener = Listener::new(socket, "port".to_owned(), accepting.clone(), move || {
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => Err(io::ErrorKind::AddrInUse.into()),
            _ => {
                let socket = tokio::net::TcpSocket::new_v4()?;
                socket.set_reuseaddr(true)?;
                socket.bind(address)?;
                socket.listen(16)
            }
        }
    });
    let served = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await;
            stream.write_all(b"here").await.unwrap();
        }
    });
    let here = async || -> io::Result<String> {
        let mut text = String::new();
        TcpStream::connect(address).await?.read_to_string(&mut text).await?;
        Ok(text)
    };
    assert_eq!(here().await.unwrap(), "here");
    other_end.shutdown(std::net::Shutdown::Both).unwrap();
    drop(other_end);
    poll_until("it is served again", async || here().await.is_ok_and(|text| text == "here")).await;
    served.await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 2, "refused once");
    assert_eq!(accepting.check(), Ok(()));
}
