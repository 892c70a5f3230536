use std::time::Duration;

use actor::testing::{run, settle};
use contract::stats::{Cadvisor, Summarise};
use fakes::runtime::Fault;
use fakes::stats::Cgroups;

use super::Bed;

#[test]
fn concurrent_asks_share_one_gathering() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        bed.start(&kernel);
        bed.runtime.inject(Fault::hold("ListContainerStats"));
        let asks: Vec<_> = (0..20)
            .map(|_| {
                let wiring = bed.wiring.clone();
                tokio::spawn(async move { wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap() })
            })
            .collect();
        while bed.asked() == 0 {
            settle().await;
        }
        bed.runtime.clear_faults();
        let mut answers = Vec::new();
        for ask in asks {
            answers.push(ask.await.unwrap());
        }
        assert_eq!(bed.asked(), 1);
        assert!(answers.iter().all(|a| std::sync::Arc::ptr_eq(a, &answers[0])));
    });
}

#[test]
fn an_answer_is_good_for_a_second_and_cadvisor_text_for_ten() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.start(&kernel);
        let first = bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(std::sync::Arc::ptr_eq(
            &first,
            &bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap()
        ));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!std::sync::Arc::ptr_eq(
            &first,
            &bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap()
        ));
        assert_eq!(bed.asked(), 2);

        let first = bed.wiring.call(Cadvisor).await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert!(std::sync::Arc::ptr_eq(&first, &bed.wiring.call(Cadvisor).await.unwrap()));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!std::sync::Arc::ptr_eq(&first, &bed.wiring.call(Cadvisor).await.unwrap()));
    });
}

#[test]
fn nobody_is_measured_while_nobody_asks() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        let actor = bed.start(&kernel);
        bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap();
        let turns = actor.info().turns;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!((bed.asked(), actor.info().turns), (1, turns));
    });
}

#[test]
fn a_rate_is_there_from_the_second_answer_on() {
    run(1, |kernel| async move {
        let bed = Bed::new(Cgroups::V2);
        bed.pod("web", &["app"]);
        let source = bed.tree.source();
        source.freeze(model::Timestamp::from_secs(1_800_000_000));
        let mut bed = bed;
        bed.deps.source = std::sync::Arc::new(source.clone());
        bed.start(&kernel);
        let rate = |s: &model::stats::Summary| s.pods[0].containers[0].cpu.unwrap().usage_nano_cores;
        assert_eq!(rate(&bed.wiring.call(Summarise { only_cpu_and_memory: true }).await.unwrap()), None);
        tokio::time::sleep(Duration::from_secs(4)).await;
        source.freeze(model::Timestamp::from_secs(1_800_000_004));
        bed.tree.cgroup("/kubepods/burstable/poduid-web/web-app", 2001, &[201]);
        assert_eq!(
            rate(&bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap()),
            Some(500_000_000),
            "one memory for both kinds"
        );
    });
}
