//! Macro that runs the same tests with every SDK.

/// Defines a module for each SDK (`python`, `node` and `go`) with a test for each line. A line names a function that
/// takes the [`Peer`](crate::peers::Peer); after `async` the function is awaited on a runtime of tokio.
///
/// ```text
/// tests::test_with_each_peer! {
///     create => crate::operations::create;
///     async protocol => crate::wire::speaks_the_protocol;
/// }
/// ```
///
/// The macro does not compile if an SDK is missing in it.
#[macro_export]
macro_rules! test_with_each_peer {
    (@tests $peer:ident) => {};
    (@tests $peer:ident async $name:ident => $function:path; $($rest:tt)*) => {
        #[tokio::test]
        async fn $name() {
            $function($crate::peers::Peer::$peer).await;
        }
        $crate::test_with_each_peer! { @tests $peer $($rest)* }
    };
    (@tests $peer:ident $name:ident => $function:path; $($rest:tt)*) => {
        #[test]
        fn $name() {
            $function($crate::peers::Peer::$peer);
        }
        $crate::test_with_each_peer! { @tests $peer $($rest)* }
    };
    (@module $module:ident $peer:ident $($lines:tt)*) => {
        mod $module {
            $crate::test_with_each_peer! { @tests $peer $($lines)* }
        }
    };
    ($($lines:tt)*) => {
        // Every SDK has a module below.
        const _: fn($crate::peers::Peer) = |peer| match peer {
            $crate::peers::Peer::Python | $crate::peers::Peer::Node | $crate::peers::Peer::Go => {}
        };
        $crate::test_with_each_peer! { @module python Python $($lines)* }
        $crate::test_with_each_peer! { @module node Node $($lines)* }
        $crate::test_with_each_peer! { @module go Go $($lines)* }
    };
}
