//! Tables of accounts by URL and environment.

use super::*;

/// Key of an account: `reef` in base64.
const SECRET: &str = "cmVlZg==";

fn account(query: &str, variables: &[(&str, &str)]) -> Result<Account, AzblobSettingsError> {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    account_of(&AzblobUrl::parse(&format!("azblob://state{query}")).unwrap(), &environment)
}

/// Returns the service, the parameters of the location, and what signs.
fn described(query: &str, variables: &[(&str, &str)]) -> String {
    let account = account(query, variables).unwrap();
    format!("{} {} {:?} {}", account.service, account.parameters(), account.signing, account.source)
}

/// Shows: state.md#in-azure-blob-storage "Requests are signed with the first of: the key of the account"
#[test]
fn first_of_the_credentials_signs() {
    let (reef, key) = ((ACCOUNT, "reef7"), (KEY, SECRET));
    let signature = (SIGNATURE, "?sv=2023-11-03&sig=a%2Bb%3D");
    let text = format!("AccountName=coral;AccountKey={SECRET};DefaultEndpointsProtocol=https");
    let string = (CONNECTION_STRINGS[0], &*text);
    let at_reef = "https://reef7.blob.core.windows.net storage_account=reef7";
    let at_coral = "https://coral.blob.core.windows.net storage_account=coral";
    let rows = [
        (vec![reef, key, signature, string], format!("{at_reef} Key AZURE_STORAGE_KEY")),
        (vec![reef, signature, string], format!("{at_reef} Signature AZURE_STORAGE_SAS_TOKEN")),
        (vec![reef, string], format!("{at_coral} Key AZURE_STORAGE_CONNECTION_STRING")),
        (vec![key, string], format!("{at_coral} Key AZURE_STORAGE_CONNECTION_STRING")),
        (vec![(CONNECTION_STRINGS[1], &*text)], format!("{at_coral} Key AZURE_STORAGEBLOB_CONNECTIONSTRING")),
        (vec![reef], format!("{at_reef} Token ")),
    ];
    for (variables, expected) in rows {
        // The account of the variable does not count beside a connection string.
        let expected = if variables == [reef, string] {
            expected.replace("storage_account=coral", "storage_account=reef7&domain=coral.blob.core.windows.net")
        } else {
            expected
        };
        assert_eq!(described("", &variables), expected, "{variables:?}");
    }
    let Signing::Signature(pairs) = account("", &[reef, signature]).unwrap().signing else { panic!("no signature") };
    assert_eq!(pairs, [("sv", "2023-11-03"), ("sig", "a+b=")].map(|(name, value)| (name.to_owned(), value.to_owned())));
}

/// Shows: state.md#in-azure-blob-storage "The parameters are those of `pulumi`"
#[test]
fn url_precedes_the_environment() {
    let (reef, key) = ((ACCOUNT, "reef7"), (KEY, SECRET));
    let domain = ("AZURE_STORAGE_DOMAIN", "blob.core.usgovcloudapi.net");
    type Row<'r> = (&'r str, &'r [(&'r str, &'r str)], &'r str);
    let rows: [Row<'_>; 9] = [
        ("", &[reef, key, domain], "https://reef7.blob.core.usgovcloudapi.net"),
        ("?domain=blob.core.chinacloudapi.cn", &[reef, key, domain], "https://reef7.blob.core.chinacloudapi.cn"),
        ("?domain=&protocol=", &[reef, key, domain], "https://reef7.blob.core.windows.net"),
        ("?protocol=http", &[reef, key], "http://reef7.blob.core.windows.net"),
        ("?storage_account=coral", &[reef], "https://coral.blob.core.windows.net"),
        ("?cdn=true&domain=cdn.example", &[reef, key], "https://cdn.example"),
        ("", &[reef, key, ("AZURE_STORAGE_IS_CDN", "1"), domain], "https://blob.core.usgovcloudapi.net"),
        ("?domain=127.0.0.1:10000", &[reef, key, ("AZURE_STORAGE_PROTOCOL", "http")], "http://127.0.0.1:10000/reef7"),
        (
            "?domain=azurite:10000",
            &[reef, key, ("AZURE_STORAGE_IS_LOCAL_EMULATOR", "t")],
            "https://azurite:10000/reef7",
        ),
    ];
    for (query, variables, expected) in rows {
        assert_eq!(account(query, variables).unwrap().service, expected, "{query} {variables:?}");
    }
    let location = |query: &str| account(query, &[reef, key]).unwrap().parameters();
    assert_eq!(location("?domain=127.0.0.1:10000"), "storage_account=reef7&domain=127.0.0.1:10000");
    assert_eq!(
        location("?domain=blob.core.chinacloudapi.cn"),
        "storage_account=reef7&domain=blob.core.chinacloudapi.cn"
    );
}

/// Shows: state.md#stores "A parameter that `sc` cannot honour is refused by name."
#[test]
fn settings_that_contradict_each_other_are_refused() {
    let (reef, key) = ((ACCOUNT, "reef7"), (KEY, SECRET));
    let signature = (SIGNATURE, "sv=2023-11-03&sig=s");
    let text = format!("AccountName=coral;AccountKey={SECRET}");
    let string = (CONNECTION_STRINGS[0], &*text);
    // Domains of Azure, and one that the user names.
    for domain in ["blob.core.chinacloudapi.cn", "z1.blob.storage.azure.net", "", "reef.example"] {
        let variables = [reef, ("AZURE_STORAGE_DOMAIN", "reef.example")];
        assert!(account(&format!("?domain={domain}"), &variables).is_ok(), "{domain}");
    }
    // The same service in other words.
    assert!(account("?protocol=https&storage_account=coral", &[string]).is_ok());
    let refused = [
        account("", &[]),
        account("", &[signature]),
        account("?storage_account=coral", &[reef, key]),
        account("?domain=evil.example", &[reef, signature]),
        account("?domain=evil.example&protocol=http", &[string]),
        account("?protocol=http", &[reef]),
        account("?domain=evil.example", &[reef]),
        account("?domain=core.windows.net.evil.example&cdn=true", &[reef]),
        account("", &[reef, (KEY, "hidden~")]),
        account("", &[reef, (SIGNATURE, "hidden")]),
        account("", &[(CONNECTION_STRINGS[1], "hidden")]),
        account("", &[(CONNECTION_STRINGS[1], "BlobEndpoint=hidden;SharedAccessSignature=sig=hidden")]),
        account("", &[(ACCOUNT, "evil.example/"), key]),
        account("", &[reef, ("AZURE_STORAGE_DOMAIN", "a/b")]),
        account("", &[reef, ("AZURE_STORAGE_PROTOCOL", "ftp")]),
    ];
    let messages = refused.map(|refused| refused.unwrap_err().to_string());
    assert!(messages.iter().all(|message| !message.contains("hidden")), "{messages:?}");
    insta::assert_snapshot!(messages.join("\n"), @"
    the storage account is missing: add `storage_account=NAME` to the URL, or set AZURE_STORAGE_ACCOUNT
    AZURE_STORAGE_SAS_TOKEN needs AZURE_STORAGE_ACCOUNT beside it: the URL of a store must not send it to another account
    the parameters of the URL (`storage_account`) lead to coral, and AZURE_STORAGE_KEY is for reef7: remove one of them
    the parameters of the URL (`domain`) lead to https://reef7.evil.example, and AZURE_STORAGE_SAS_TOKEN is for https://reef7.blob.core.windows.net: remove one of them
    the parameters of the URL (`domain`, `protocol`) lead to http://coral.evil.example, and AZURE_STORAGE_CONNECTION_STRING is for https://coral.blob.core.windows.net: remove one of them
    an access token is sent over https only: set `protocol=https`, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY
    an access token is sent to hosts of Azure only, and `evil.example` is none: set AZURE_STORAGE_DOMAIN to it, if it is your own
    an access token is sent to hosts of Azure only, and `core.windows.net.evil.example` is none: set AZURE_STORAGE_DOMAIN to it, if it is your own
    AZURE_STORAGE_KEY is invalid: the key of the account is not base64
    AZURE_STORAGE_SAS_TOKEN is invalid: the shared access signature is not a query such as `sv=…&sig=…`
    AZURE_STORAGEBLOB_CONNECTIONSTRING is invalid: expected parts `NAME=VALUE` with semicolons between them
    AZURE_STORAGEBLOB_CONNECTIONSTRING is invalid: BlobEndpoint is not a URL that begins with https:// or http://
    AZURE_STORAGE_ACCOUNT is invalid: expected 3 to 24 lower-case letters and digits
    AZURE_STORAGE_DOMAIN is invalid: expected the name of a domain
    AZURE_STORAGE_PROTOCOL is invalid: expected `https` or `http`
    ");
}
