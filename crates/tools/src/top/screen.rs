//! The screen, drawn again with each look. Its last line says if the server does not answer or is
//! busy with a script.

use std::io::{stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table as TableWidget, Wrap};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, poll};

use super::report::TopReport;
use super::view::{TextTable, TopView};
use super::watch::{LookAnswer, ServerLook, ServerWatch};
use super::{Options, unix_seconds};

/// The time between two checks for signals, and during a look also for keys.
const KEYS: Duration = Duration::from_millis(50);
/// The time without a reply after which the screen reports it.
const SILENT: Duration = Duration::from_secs(2);

/// The exit code when the terminal is gone, as if SIGHUP had ended the process.
const HANGUP_STATUS: i32 = 129;

/// The problem in the last line, instead of the keys.
enum ScreenTrouble {
    /// No reply since then.
    Silent(Instant),
    /// The server is busy, in its own words.
    Busy(String),
}

impl ScreenTrouble {
    fn text(&self) -> String {
        match self {
            ScreenTrouble::Silent(since) => {
                format!("no answer from the server for {} s", since.elapsed().as_secs())
            }
            ScreenTrouble::Busy(words) => words.clone(),
        }
    }
}

/// The effect of a key.
enum Wish {
    Quit,
    /// The next look immediately.
    Look,
    Nothing,
}

/// Shows looks until a key or `stop` ends the screen.
pub(super) fn show_until_quit(
    watch: &ServerWatch,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot use this terminal: {error}");
    end_with_terminal();
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = show(&mut terminal, watch, options, stop);
    let restored = ratatui::try_restore().map_err(failed);
    // Before other output on the terminal.
    let _ = std::io::Write::flush(&mut stdout());
    result.and(restored)
}

/// Ends the process when its terminal is gone, since a wait for keys would then return immediately,
/// again and again.
fn end_with_terminal() {
    thread::spawn(|| {
        let stdin = stdin();
        loop {
            // Without flags, poll reports only the end of the terminal.
            let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
            if poll(&mut ends, None).is_ok() && !ends[0].revents().is_empty() {
                std::process::exit(HANGUP_STATUS);
            }
        }
    });
}

fn show(
    terminal: &mut DefaultTerminal,
    watch: &ServerWatch,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot use this terminal: {error}");
    let mut last: Option<ServerLook> = None;
    let mut view: Option<TopView> = None;
    let mut trouble: Option<ScreenTrouble> = None;
    loop {
        watch.ask();
        let asked = Instant::now();
        // Until the reply has arrived.
        let answer = loop {
            terminal.draw(|frame| draw(frame, view.as_ref(), trouble.as_ref())).map_err(failed)?;
            match watch.wait(KEYS) {
                Some(answer) => break answer?,
                None if asked.elapsed() > SILENT => trouble = Some(ScreenTrouble::Silent(asked)),
                None => {}
            }
            if matches!(wish(Duration::ZERO, stop).map_err(failed)?, Wish::Quit) {
                return Ok(());
            }
        };
        // The first rates come early.
        let pause = if last.is_some() { options.interval } else { options.interval / 4 };
        trouble = match answer {
            LookAnswer::Busy(words) => Some(ScreenTrouble::Busy(words)),
            LookAnswer::Look(look) => {
                if let Some(before) = &last {
                    let report = TopReport::between(before, &look);
                    view = Some(TopView::new(&report, &options.address, unix_seconds()));
                }
                last = Some(*look);
                None
            }
        };
        let until = Instant::now() + pause;
        loop {
            // The size may have changed, too.
            terminal.draw(|frame| draw(frame, view.as_ref(), trouble.as_ref())).map_err(failed)?;
            let left = until.saturating_duration_since(Instant::now());
            match wish(left, stop).map_err(failed)? {
                Wish::Quit => return Ok(()),
                Wish::Look => break,
                Wish::Nothing if left.is_zero() => break,
                Wish::Nothing => {}
            }
        }
    }
}

/// The effect of the next key within this time, or of a signal, which sets `stop`.
fn wish(time: Duration, stop: &AtomicBool) -> std::io::Result<Wish> {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) {
            return Ok(Wish::Quit);
        }
        // A signal does not end the wait for keys.
        if event::poll(left.min(KEYS))? {
            break;
        }
        if left.is_zero() {
            return Ok(Wish::Nothing);
        }
    }
    Ok(match event::read()? {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => Wish::Nothing,
        Event::Key(key) => match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
            KeyCode::Char(' ') => Wish::Look,
            _ => Wish::Nothing,
        },
        _ => Wish::Nothing,
    })
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const QUIET: Style = Style::new().fg(Color::DarkGray);

fn draw(frame: &mut Frame<'_>, view: Option<&TopView>, trouble: Option<&ScreenTrouble>) {
    let area = frame.area();
    let Some(view) = view else {
        let text = trouble.map_or_else(|| "connecting".to_owned(), ScreenTrouble::text);
        frame.render_widget(Paragraph::new(text), area);
        return;
    };
    let height = |rows: usize| Constraint::Length(u16::try_from(rows).unwrap_or(u16::MAX));
    let rows = |table: &TextTable| height(table.rows.len() + 3);
    let [top, limit, facts, threads, commands, lists, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        height(view.facts.len() + 1),
        rows(&view.threads),
        rows(&view.commands),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(view.heading.as_str()).style(BOLD), top);
    let lines = vec![
        Line::from(vec![Span::styled("limit   ", QUIET), Span::styled(&view.limit[0], BOLD)]),
        Line::from(vec![Span::styled("advice  ", QUIET), Span::raw(&view.limit[1])]),
    ];
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), limit);
    let lines: Vec<Line<'_>> = view
        .facts
        .iter()
        .map(|(name, value)| {
            Line::from(vec![Span::styled(format!("{name:13}"), QUIET), Span::raw(value.as_str())])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), facts);
    render(frame, &view.threads, threads);
    render(frame, &view.commands, commands);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)])
            .spacing(2)
            .areas(lists);
    match (&view.hot, &view.slow) {
        (Some(hot), Some(slow)) => {
            render(frame, hot, left);
            render(frame, slow, right);
        }
        (Some(one), None) | (None, Some(one)) => render(frame, one, lists),
        (None, None) => {}
    }
    let foot_text = match trouble {
        Some(trouble) => Line::styled(trouble.text(), Style::new().fg(Color::Red)),
        None => Line::styled("q ends, space looks now", QUIET),
    };
    frame.render_widget(Paragraph::new(foot_text), foot);
}

fn render(frame: &mut Frame<'_>, table: &TextTable, area: Rect) {
    // The title is the heading of the first column.
    let heads = table.head.iter().enumerate().map(|(nth, name)| match nth {
        0 => Cell::new(table.title.to_uppercase()),
        _ => Cell::new(Line::raw(*name).right_aligned()),
    });
    let rows = table.rows.iter().map(|row| {
        Row::new(row.iter().enumerate().map(|(nth, cell)| match nth {
            0 => Cell::new(cell.as_str()),
            _ => Cell::new(Line::raw(cell.as_str()).right_aligned()),
        }))
    });
    let mut widths: Vec<Constraint> = table
        .widths()
        .into_iter()
        .map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)))
        .collect();
    if let Some(first) = widths.first_mut() {
        *first = Constraint::Min(8);
    }
    let widget =
        TableWidget::new(rows, widths).header(Row::new(heads).style(QUIET)).column_spacing(2);
    frame.render_widget(widget, area);
}
