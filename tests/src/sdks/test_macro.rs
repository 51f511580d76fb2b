//! Macro that runs the same tests with every SDK.

/// Defines a module for each SDK (`python`, `node` and `go`) with a test for each line. A line names a function that
/// takes the [`Sdk`](crate::sdks::Sdk); after `async` the function is awaited on a runtime of tokio.
///
/// ```text
/// tests::test_with_each_sdk! {
///     create => crate::operations::create;
///     async protocol => crate::wire::speaks_the_protocol;
/// }
/// ```
///
/// The macro does not compile if an SDK is missing in it.
#[macro_export]
macro_rules! test_with_each_sdk {
    (@tests $sdk:ident) => {};
    (@tests $sdk:ident async $name:ident => $function:path; $($rest:tt)*) => {
        #[tokio::test]
        async fn $name() {
            $function($crate::sdks::Sdk::$sdk).await;
        }
        $crate::test_with_each_sdk! { @tests $sdk $($rest)* }
    };
    (@tests $sdk:ident $name:ident => $function:path; $($rest:tt)*) => {
        #[test]
        fn $name() {
            $function($crate::sdks::Sdk::$sdk);
        }
        $crate::test_with_each_sdk! { @tests $sdk $($rest)* }
    };
    (@module $module:ident $sdk:ident $($lines:tt)*) => {
        mod $module {
            $crate::test_with_each_sdk! { @tests $sdk $($lines)* }
        }
    };
    ($($lines:tt)*) => {
        // Every SDK has a module below.
        const _: fn($crate::sdks::Sdk) = |sdk| match sdk {
            $crate::sdks::Sdk::Python | $crate::sdks::Sdk::Node | $crate::sdks::Sdk::Go => {}
        };
        $crate::test_with_each_sdk! { @module python Python $($lines)* }
        $crate::test_with_each_sdk! { @module node Node $($lines)* }
        $crate::test_with_each_sdk! { @module go Go $($lines)* }
    };
}
