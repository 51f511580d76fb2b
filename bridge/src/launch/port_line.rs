//! Parser of the port line, the first line of a plugin's output (docs/spec/provider-protocol.md#1.5).

/// Terminal progress sequences that the build tool of .NET writes before the output of the program.
const PROGRESS: [&str; 2] = ["\u{1b}]9;4;3;\u{1b}\\", "\u{1b}]9;4;0;\u{1b}\\"];

/// Returns the port in a line: a plain decimal number, optionally surrounded by white space and the progress sequences
/// of .NET.
pub(super) fn parse_port(line: &str) -> Option<u16> {
    let line = PROGRESS.iter().fold(line.to_owned(), |line, mark| line.replace(mark, ""));
    let digits = line.trim();
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_line_is_a_plain_decimal_number() {
        for (line, port) in [
            ("41233", 41233),
            ("  1\t", 1),
            ("65535\r", 65535),
            ("\u{1b}]9;4;3;\u{1b}\\\u{1b}]9;4;0;\u{1b}\\50051", 50051),
        ] {
            assert_eq!(parse_port(line), Some(port), "{line:?}");
        }
        for invalid in [
            "",
            " ",
            "0",
            "65536",
            "+80",
            "-1",
            "8080 ready",
            "0x1F90",
            "port: 80",
            "\u{1b}[33m80\u{1b}[39m",
            "1|1|tcp|x",
        ] {
            assert_eq!(parse_port(invalid), None, "{invalid:?}");
        }
    }
}
