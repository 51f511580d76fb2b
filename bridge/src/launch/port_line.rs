//! The line that says the port (provider protocol, section 1.5).

/// What .NET's build tool writes to the terminal before the program's own output begins.
const PROGRESS: [&str; 2] = ["\u{1b}]9;4;3;\u{1b}\\", "\u{1b}]9;4;0;\u{1b}\\"];

/// The port in a line: a plain decimal number, with white space and .NET's progress marks around it at most.
pub(super) fn parse_port(line: &str) -> Option<u16> {
    let line = PROGRESS.iter().fold(line.to_owned(), |line, mark| line.replace(mark, ""));
    let digits = line.trim();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_plain_number_and_nothing_else() {
        for (line, port) in [
            ("41233", 41233),
            ("  1\t", 1),
            ("65535\r", 65535),
            ("\u{1b}]9;4;3;\u{1b}\\\u{1b}]9;4;0;\u{1b}\\50051", 50051),
        ] {
            assert_eq!(parse_port(line), Some(port), "{line:?}");
        }
        for bad in [
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
            assert_eq!(parse_port(bad), None, "{bad:?}");
        }
    }
}
