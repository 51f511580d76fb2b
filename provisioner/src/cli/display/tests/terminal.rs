//! Tests of the live display, read back from an emulated terminal.

use bridge::provider::{ErrorClass, ErrorDetails, Method};
use engine::events::{Download, DownloadStage, ScheduledRetry};

use super::*;

/// Emulated terminal. Line ends return the cursor, as with terminal drivers.
#[derive(Clone)]
struct Screen(Arc<Mutex<vt100::Parser>>);

impl Screen {
    fn new() -> Self {
        Self::of_size(80, 24)
    }

    fn of_size(columns: u16, rows: u16) -> Self {
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 1000);
        Self(Arc::new(Mutex::new(parser)))
    }

    fn contents(&self) -> String {
        self.0.lock().unwrap().screen().contents()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
        self.0.lock().unwrap().process(text.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn two_hundred_resources_fit_on_the_screen() {
    let screen = Screen::new();
    let script = two_hundred_creates();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    script.play(&mut display, 0, 700);
    insta::assert_snapshot!("live_start", screen.contents());
    script.play(&mut display, 700, 6_930);
    insta::assert_snapshot!("live_middle", screen.contents());
    script.play(&mut display, 6_930, u64::MAX);
    insta::assert_snapshot!("live_end", screen.contents());
}

#[test]
fn heading_counts_the_changes_that_the_preview_announced() {
    let screen = Screen::new();
    let mut display = LiveDisplay::new(screen.clone(), io::sink(), || Some((80, 24)), options(true));
    let heading = || screen.contents().lines().find(|line| line.contains("aquarium")).unwrap_or_default().to_owned();
    let creates: Vec<Arc<StepInfo>> = ["a", "b", "c"]
        .map(|name| Arc::new(step(StepOp::Create, &urn("files:fs:File", name), None, Some(bag([])))))
        .to_vec();
    let same = Arc::new(step(StepOp::Same, &urn("files:fs:File", "d"), Some(bag([])), Some(bag([]))));
    let mut preview = Script::new(Operation::Update, true);
    let mut update = Script::new(Operation::Update, false);
    for script in [&mut preview, &mut update] {
        for info in creates[..2].iter().chain([&same]) {
            script.start(10, info);
            script.done(20, info, 10);
        }
        script.start(30, &creates[2]);
    }
    preview.play(&mut display, 0, 40);
    assert!(!heading().contains('['), "a preview has no total: {}", heading());
    preview.done(40, &creates[2], 10);
    preview.end(50, Operation::Update, true, Outcome::Succeeded, &[]);
    preview.play(&mut display, 40, 60);
    update.play(&mut display, 0, 40);
    assert!(heading().contains("Updating aquarium  [2/3]  0s"), "{}", heading());
    let mut refresh = Script::new(Operation::Refresh, false);
    refresh.start(10, &same);
    refresh.play(&mut display, 0, 20);
    assert!(!heading().contains('['), "no preview of a refresh: {}", heading());
}

#[test]
fn each_kind_of_change_has_its_own_display() {
    let screen = Screen::new();
    let script = all_step_kinds(false);
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(false));
    let mut display = Redacting::new(&mut display);
    script.play(&mut display, 0, 66_500);
    insta::assert_snapshot!("live_kinds_running", screen.contents());
    script.play(&mut display, 66_500, u64::MAX);
    insta::assert_snapshot!("live_kinds_end", screen.contents());
}

/// Returns a script of a component within a component and their children, one of which drifted.
fn nested() -> Script {
    let mut script = Script::new(Operation::Update, true);
    script.start(10, &root_step(StepOp::Same));
    let site = Urn::new("aquarium", "tidepool", None, "reef:index:Site", "site");
    let cache = Urn::new("aquarium", "tidepool", Some(&site), "reef:index:Cache", "cache");
    let component = |urn: &Urn, parent: Urn| {
        let mut entry = ResourceState::new(urn.clone(), false);
        entry.parent = Some(parent);
        Arc::new(StepInfo {
            old: None,
            new: Some(Arc::new(entry)),
            ..step(StepOp::Create, urn, None, Some(PropertyMap::new()))
        })
    };
    let child = |parent: &Urn, name: &str, op, old: Option<PropertyMap>, new: Option<PropertyMap>| {
        let urn = Urn::new("aquarium", "tidepool", Some(parent), "aws:s3/object:Object", name);
        let mut info = step(op, &urn, old, new);
        let with_parent = |state: Option<Arc<ResourceState>>| {
            state.map(|state| Arc::new(ResourceState { parent: Some(parent.clone()), ..(*state).clone() }))
        };
        (info.old, info.new) = (with_parent(info.old), with_parent(info.new));
        info
    };
    // The refresh finds drift; the program registers the actual inputs, so the step after it is `Same`.
    let bag_of = |size: f64| Some(bag([("size", size.into())]));
    let refreshed = child(&site, "logo", StepOp::Refresh, bag_of(1.0), bag_of(2.0));
    let refreshed = Arc::new(StepInfo { result: Some(StepOp::Update), ..refreshed });
    script.start(20, &refreshed);
    script.done(30, &refreshed, 10);
    for (urn, parent) in [(&site, root()), (&cache, site.clone())] {
        let info = component(urn, parent);
        script.start(40, &info);
        script.done(40, &info, 0);
    }
    let same = Arc::new(child(&site, "logo", StepOp::Same, bag_of(2.0), bag_of(2.0)));
    script.start(50, &same);
    script.done(50, &same, 0);
    let page = Arc::new(child(&cache, "page", StepOp::Create, None, bag_of(3.0)));
    script.start(60, &page);
    script.done(60, &page, 0);
    let failed = Arc::new(child(&cache, "style", StepOp::Create, None, bag_of(4.0)));
    script.start(70, &failed);
    let error = Message::new(Severity::Error, "too large");
    script.at(75, Event::Message(Message { urn: Some(failed.urn.clone()), ..error }));
    script.end(80, Operation::Update, true, Outcome::Failed, &[(StepOp::Create, 3), (StepOp::Same, 2)]);
    script
}

#[test]
fn components_contain_their_children_and_drift_is_shown() {
    let screen = Screen::new();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    nested().play(&mut display, 0, u64::MAX);
    insta::assert_snapshot!("live_nested", screen.contents());
}

#[test]
fn small_terminal_shows_failed_and_running_resources() {
    let screen = Screen::of_size(40, 8);
    let script = two_hundred_creates();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((40, 8)), options(true));
    script.play(&mut display, 0, 6_930);
    insta::assert_snapshot!("live_small", screen.contents());
}

#[test]
fn narrowed_terminal_is_repainted_without_remains() {
    let screen = Screen::new();
    let size = Arc::new(Mutex::new((80, 24)));
    let reported_size = Arc::clone(&size);
    let script = two_hundred_creates();
    let mut display =
        LiveDisplay::new(screen.clone(), screen.clone(), move || Some(*reported_size.lock().unwrap()), options(true));
    script.play(&mut display, 0, 700);
    // The emulator does not wrap its contents again, so this only tests that the block is painted once.
    *size.lock().unwrap() = (60, 12);
    screen.0.lock().unwrap().screen_mut().set_size(12.try_into().unwrap(), 60.try_into().unwrap());
    script.play(&mut display, 700, 1_500);
    assert_eq!(screen.contents().matches("Updating aquarium").count(), 1);
}

#[test]
fn ephemeral_message_disappears_and_other_messages_stay() {
    let screen = Screen::new();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    let ephemeral = Message { ephemeral: true, ..Message::new(Severity::Info, "fetching plugin aws 6.83.4: 40%") };
    display.event(stamp(0), subject(), &Event::Message(ephemeral)).unwrap();
    display.tick(Duration::from_millis(100)).unwrap();
    assert_eq!(screen.contents().trim(), "⠙ fetching plugin aws 6.83.4: 40%");
    let lasting = Message::new(Severity::Warning, "the plugin aws is not pinned");
    display.event(stamp(200), EventSubject { stack: "", place: None }, &Event::Message(lasting)).unwrap();
    display.pause().unwrap();
    assert_eq!(screen.contents().trim(), "warning: the plugin aws is not pinned");
    assert!(!screen.0.lock().unwrap().screen().hide_cursor());
}

#[test]
fn repeated_call_stays_above_the_running_resources_without_secrets() {
    let screen = Screen::new();
    let mut live = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    let mut script = Script::new(Operation::Update, false);
    let inputs = bag([("account", PropertyValue::secret("correct horse".into()))]);
    let info = Arc::new(step(StepOp::Create, &urn("files:fs:File", "a"), None, Some(inputs)));
    script.start(10, &info);
    script.at(
        20,
        Event::RetryScheduled(Box::new(ScheduledRetry {
            plugin: "files".to_owned(),
            method: Method::Create,
            urn: Some(info.urn.clone()),
            function: None,
            attempt: 2,
            delay: Duration::from_millis(1_500),
            message: "correct horse is busy\nand more".to_owned().into(),
            details: ErrorDetails::new(ErrorClass::Quota),
        })),
    );
    script.play(&mut Redacting::new(&mut live), 0, 100);
    let contents = screen.contents();
    let lines: Vec<&str> = contents.lines().collect();
    assert_eq!(lines[0], "  ↻ a (files:fs:File): Create is repeated in 1.5s (attempt 2): [secret] is busy");
    assert!(lines[1].contains("Updating aquarium") && lines.iter().any(|line| line.contains("creating")), "{contents}");
}

#[test]
fn each_running_download_has_a_progress_bar() {
    let screen = Screen::new();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    let mut show = |plugin: &str, received, total, stage| {
        let name = format!("pulumi-resource-{plugin}-v6.83.4-linux-amd64.tar.gz");
        let download = Download { plugin: plugin.to_owned(), name, received, total, stage };
        display.event(stamp(0), subject(), &Event::Download(download)).unwrap();
        display.tick(Duration::from_millis(100)).unwrap();
        screen.contents().trim_end().to_owned()
    };
    show("aws", 0, Some(212_400_000), DownloadStage::Started);
    show("aws", 53_100_000, Some(212_400_000), DownloadStage::Running);
    insta::assert_snapshot!(show("tls", 0, None, DownloadStage::Started), @r"
    ⠙ aws ━━━━━━━━━━━━━━━━━━━━━━━━  25% 53.1 MB of 212.4 MB  pulumi-resource-aws-v…
    ⠙ tls fetching pulumi-resource-tls-v6.83.4-linux-amd64.tar.gz
    ");
    insta::assert_snapshot!(show("aws", 212_400_000, Some(212_400_000), DownloadStage::Done), @r"
    Downloaded aws: pulumi-resource-aws-v6.83.4-linux-amd64.tar.gz (212.4 MB)
    ⠙ tls fetching pulumi-resource-tls-v6.83.4-linux-amd64.tar.gz
    ");
    assert!(!show("tls", 0, None, DownloadStage::Failed).contains("tls"));
}

/// Returns a script of a run with two creates, one of which does not end.
fn unfinished_creates() -> Script {
    let mut script = Script::new(Operation::Update, false);
    script.start(5, &root_step(StepOp::Same));
    let create = |name| Arc::new(step(StepOp::Create, &urn("files:fs:File", name), None, Some(PropertyMap::new())));
    let (site, logo) = (create("site--prod"), create("logo--prod"));
    script.start(10, &site);
    script.start(20, &logo);
    script.done(50, &logo, 30);
    script
}

#[test]
fn stop_is_shown_at_once_with_the_running_steps_and_the_effect_of_the_next_signal() {
    let screen = Screen::new();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    let script = unfinished_creates();
    script.play(&mut display, 0, 30);
    display.stop(stamp(30), StopNotice::Stopping).unwrap();
    insta::assert_snapshot!("live_stopping", screen.contents());
    script.play(&mut display, 30, 60);
    let shown = screen.contents();
    assert!(shown.contains("stopping: waiting for site--prod (creating)\n"), "{shown}");
    display.stop(stamp(70), StopNotice::Aborting).unwrap();
    insta::assert_snapshot!("live_aborting", screen.contents());
}

#[test]
fn stop_is_shown_on_a_full_screen_and_before_a_phase() {
    let screen = Screen::of_size(80, 12);
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 12)), options(true));
    display.stop(stamp(0), StopNotice::Stopping).unwrap();
    assert_eq!(screen.contents().trim_end(), "warning: stopping; press Ctrl-C again to abort without waiting");
    two_hundred_creates().play(&mut display, 0, 6_930);
    let shown = screen.contents();
    assert!(shown.contains("warning: stopping: waiting for 13 steps: resource-096--production (creating)"), "{shown}");
    assert!(shown.contains("press Ctrl-C again to abort"), "{shown}");
}

#[test]
fn stop_is_printed_with_the_running_steps_without_a_terminal() {
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), Shared::default(), None, options(true));
    unfinished_creates().play(&mut display, 0, 60);
    for notice in [StopNotice::Stopping, StopNotice::Aborting] {
        display.stop(stamp(60), notice).unwrap();
    }
    let printed = progress.text();
    let warnings: Vec<&str> = printed.lines().filter(|line| line.starts_with("warning")).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn resource_whose_check_runs_is_named_at_a_stop() {
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), Shared::default(), None, options(true));
    let mut script = Script::new(Operation::Update, true);
    let [site, logo] = ["site--prod", "logo--prod"].map(|name| urn("files:fs:File", name));
    script.at(10, Event::RegistrationStarted(site.clone()));
    script.at(20, Event::RegistrationStarted(logo));
    script.at(30, Event::RegistrationDecided(site));
    script.play(&mut display, 0, 60);
    display.stop(stamp(60), StopNotice::Stopping).unwrap();
    let printed = progress.text();
    assert!(printed.contains("\nwarning: stopping: waiting for logo--prod (checking); press"), "{printed}");
}

#[test]
fn line_of_the_log_is_above_the_tree_and_leaves_it_whole() {
    let screen = Screen::new();
    let script = two_hundred_creates();
    let mut display = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(true));
    script.play(&mut display, 0, 700);
    let before = screen.contents();
    display.log("12:00 DEBUG engine: begins=step").unwrap();
    display.tick(Duration::from_millis(700)).unwrap();
    let shown = screen.contents();
    let tree = before.lines().skip_while(|line| !line.contains("aquarium"));
    let below = shown.lines().skip_while(|line| !line.contains("DEBUG")).skip(1);
    // The screen has one line less for the tree.
    let below: Vec<&str> = below.collect();
    assert!(!below.is_empty(), "{shown}");
    assert!(tree.eq(below.iter().copied()), "{before}\n---\n{shown}");
}
