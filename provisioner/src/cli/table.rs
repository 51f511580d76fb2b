//! Aligned columns under headings.

use super::display::{Line, Palette};

/// Returns the lines of a table. The width of the last column is not limited.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> Vec<Line> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| Line::plain(cell).width());
        cells.chain([headings[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = Line>| {
        let mut line = Line::new();
        let mut end = 0;
        for (cell, width) in cells.zip(&widths) {
            line = line.join(cell).pad_to(end + width + 2);
            end += width + 2;
        }
        line
    };
    let head = line(&mut headings.iter().map(|heading| Line::new().styled(Palette::BOLD, heading)));
    let body = rows.iter().map(|row| line(&mut row.iter().map(Line::plain)));
    std::iter::once(head).chain(body).collect()
}
