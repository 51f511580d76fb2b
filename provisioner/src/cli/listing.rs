//! Tables of the commands: aligned columns under headings, and times as people read them.

use jiff::Timestamp;

use super::display::{Line, Palette};

/// Returns how long ago a time was: `just now`, `3 minutes ago`, `2 days ago`. A time in the future is returned as a
/// timestamp.
pub(crate) fn ago(time: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const MONTH: i64 = 30 * DAY;
    const YEAR: i64 = 365 * DAY;
    let seconds = now.as_second() - time.as_second();
    let (count, unit) = match seconds {
        // The clocks of two machines differ by seconds.
        -5..=4 => return "just now".to_owned(),
        ..-5 => return date_and_time(time),
        5..MINUTE => (seconds, "second"),
        MINUTE..HOUR => (seconds / MINUTE, "minute"),
        HOUR..DAY => (seconds / HOUR, "hour"),
        DAY..MONTH => (seconds / DAY, "day"),
        MONTH..YEAR => (seconds / MONTH, "month"),
        YEAR.. => (seconds / YEAR, "year"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// Returns a time with how long ago it was: `2026-11-21 00:49:38 UTC (3 days ago)`.
pub(crate) fn time_and_age(time: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", date_and_time(time), ago(time, now))
}

pub(crate) fn date_and_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Width of a table, in columns of a terminal.
const WIDTH: usize = 80;
/// Mark of a cell without a value.
const NONE: &str = "-";

/// Returns the lines of a table. Columns that do not fit beside those before them are lines below each row, with their headings. A
/// single cell may be wider than the table.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> Vec<Line> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| Line::plain(cell).width());
        cells.chain([headings[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut end = 0;
    let fits = |width: &&usize| {
        end += **width + 2;
        end - 2 <= WIDTH
    };
    let beside = widths.iter().take_while(fits).count().max(1);
    let below = &headings[beside..];
    let widest = below.iter().map(|heading| heading.len()).max().unwrap_or_default();
    let line = |cells: &mut dyn Iterator<Item = Line>| {
        let mut line = Line::new();
        let mut end = 0;
        for (cell, width) in cells.zip(&widths) {
            line = line.join(cell).pad_to(end + width + 2);
            end += width + 2;
        }
        line
    };
    let head = line(&mut headings[..beside].iter().map(|heading| Line::new().styled(Palette::BOLD, heading)));
    let body = rows.iter().flat_map(|row| {
        let cells = below.iter().zip(row.iter().skip(beside)).filter(|(_, cell)| *cell != NONE);
        let below =
            cells.map(|(heading, cell)| Line::plain("  ").styled(Palette::BOLD, heading).pad_to(widest + 4).text(cell));
        std::iter::once(line(&mut row.iter().take(beside).map(Line::plain))).chain(below).collect::<Vec<_>>()
    });
    std::iter::once(head).chain(body).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_are_lines_below_the_row() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let text = |rows: &[Vec<String>]| -> String {
            table(&["NAME", "TYPE", "STATUS"], rows).iter().map(|line| line.render(false) + "\n").collect()
        };
        insta::assert_snapshot!(text(&[row(&["a", "b", "-"])]), @"
        NAME  TYPE  STATUS
        a     b     -
        ");
        let long = "x".repeat(70);
        insta::assert_snapshot!(text(&[row(&["a", "b", "-"]), row(&["c", "d", &long])]), @"
        NAME  TYPE
        a     b
        c     d
          STATUS  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        ");
    }

    #[test]
    fn age_is_given_in_the_largest_unit() {
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        let table = [
            ("2026-11-24T12:00:00Z", "just now"),
            ("2026-11-24T12:00:04Z", "just now"),
            ("2026-11-24T11:59:48Z", "12 seconds ago"),
            ("2026-11-24T11:59:00Z", "1 minute ago"),
            ("2026-11-24T11:56:01Z", "3 minutes ago"),
            ("2026-11-24T10:59:00Z", "1 hour ago"),
            ("2026-11-22T12:00:00Z", "2 days ago"),
            ("2026-09-20T12:00:00Z", "2 months ago"),
            ("2025-11-20T12:00:00Z", "1 year ago"),
            ("2026-11-24T12:01:00Z", "2026-11-24 12:01:00 UTC"),
        ];
        for (time, expected) in table {
            assert_eq!(ago(time.parse().unwrap(), now), expected, "{time}");
        }
        let time = "2026-11-21T00:49:38.8Z".parse().unwrap();
        assert_eq!(time_and_age(time, now), "2026-11-21 00:49:38 UTC (3 days ago)");
    }
}
