//! Sources of access tokens of Azure, against a server of the test.

use std::collections::BTreeMap;

use cloud::azure::AzureCredentials;
use tests::http::{HttpServer, Request, Response};

const SCOPE: &str = "https://storage.azure.com/.default";
/// Id of a tenant and of an application.
const TENANT: &str = "0000-tenant";
const CLIENT: &str = "0000-client";

/// Starts a server that replies to all issuers of tokens. The tenant `unknown`, and the identity `unknown`, are refused.
async fn start() -> HttpServer {
    HttpServer::start(|request| async move { reply(&request) }).await.unwrap()
}

fn reply(request: &Request) -> Response {
    let json = |status: u16, text: String| Response::new(status, text).with("Content-Type", "application/json");
    let token =
        |name: &str, end: &str| json(200, format!(r#"{{"access_token":"ey.{name}",{end},"token_type":"Bearer"}}"#));
    let refused = |code: &str, words: &str| json(400, format!(r#"{{"error":"{code}","error_description":"{words}"}}"#));
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let is_metadata = request.header("metadata") == Some("true");
    match (&*request.method, path) {
        ("POST", "/0000-tenant/oauth2/v2.0/token") => token("application", r#""expires_in":3599"#),
        ("POST", "/short/oauth2/v2.0/token") => token("short", r#""expires_in":60"#),
        ("POST", "/unknown/oauth2/v2.0/token") => {
            refused("invalid_request", "AADSTS90002: Tenant not found.\\r\\nTrace ID: 1")
        }
        ("GET", "/metadata/identity/oauth2/token") if !is_metadata => refused("invalid_request", "no header"),
        ("GET", "/metadata/identity/oauth2/token") if query.contains("client_id=unknown") => {
            refused("invalid_request", "Identity not found")
        }
        ("GET", "/metadata/identity/oauth2/token") => token("machine", r#""expires_on":"99999999999""#),
        ("GET", "/app") if request.header("x-identity-header") == Some("h") => {
            token("app", r#""expires_on":99999999999"#)
        }
        ("POST", "/shell") if is_metadata => token("shell", r#""expires_in":"3599""#),
        _ => refused("invalid_request", "Identity not found"),
    }
}

/// Returns credentials of variables, in whose values `URL` is the URL of a server.
fn credentials(server: &HttpServer, variables: &[(&str, &str)]) -> AzureCredentials {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.replace("URL", &server.url())));
    let environment: BTreeMap<_, _> = variables.chain([("PATH".to_owned(), "/nonexistent".to_owned())]).collect();
    AzureCredentials::new(&environment, SCOPE)
}

async fn token(server: &HttpServer, variables: &[(&str, &str)]) -> Result<String, String> {
    let token = credentials(server, variables).token().await;
    token.map(|token| token.to_string()).map_err(|failure| failure.to_string().replace(&server.url(), "URL"))
}

const AUTHORITY: (&str, &str) = ("AZURE_AUTHORITY_HOST", "URL/");
const METADATA: (&str, &str) = ("AZURE_POD_IDENTITY_AUTHORITY_HOST", "URL");
const APPLICATION: [(&str, &str); 2] = [("AZURE_TENANT_ID", TENANT), ("AZURE_CLIENT_ID", CLIENT)];
const SECRET: (&str, &str) = ("AZURE_CLIENT_SECRET", "hidden & secret");

/// Shows: state.md#in-azure-blob-storage "An access token comes from the first of these sources that is set up"
#[tokio::test]
async fn token_comes_from_the_first_source_that_is_set_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hidden.assertion\n").unwrap();
    let file = ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap());
    let [tenant, client] = APPLICATION;
    let server = start().await;
    let app = [("IDENTITY_ENDPOINT", "URL/app"), ("IDENTITY_HEADER", "h")];
    let rows: [(&[(&str, &str)], &str); 6] = [
        (&[AUTHORITY, METADATA, tenant, client, SECRET, file], "ey.application"),
        (&[AUTHORITY, METADATA, tenant, client, file], "ey.application"),
        (&[METADATA, tenant, client], "ey.machine"),
        (&[METADATA], "ey.machine"),
        (&[METADATA, app[0], app[1]], "ey.app"),
        (&[METADATA, ("MSI_ENDPOINT", "URL/shell")], "ey.shell"),
    ];
    for (variables, expected) in rows {
        assert_eq!(token(&server, variables).await.unwrap(), expected, "{variables:?}");
    }
    let requests = server.requests();
    let sent: Vec<_> = requests
        .iter()
        .map(|request| {
            format!("{} {} {}", request.method, request.path, String::from_utf8_lossy(&request.body))
                .trim_end()
                .to_owned()
        })
        .collect();
    insta::assert_snapshot!(sent.join("\n"), @"
    POST /0000-tenant/oauth2/v2.0/token client_id=0000-client&client_secret=hidden+%26+secret&scope=https%3A%2F%2Fstorage.azure.com%2F.default&grant_type=client_credentials
    POST /0000-tenant/oauth2/v2.0/token client_id=0000-client&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=hidden.assertion&scope=https%3A%2F%2Fstorage.azure.com%2F.default&grant_type=client_credentials
    GET /metadata/identity/oauth2/token
    GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com&client_id=0000-client
    GET /metadata/identity/oauth2/token
    GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com
    GET /app?api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com
    POST /shell resource=https%3A%2F%2Fstorage.azure.com
    ");
}

/// Shows: state.md#in-azure-blob-storage "the error names each of them with the reason"
#[tokio::test]
async fn sources_that_cannot_be_used_are_named() {
    let server = start().await;
    let [tenant, client] = APPLICATION;
    let nowhere = ("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:1");
    let missing = ("AZURE_FEDERATED_TOKEN_FILE", "/nonexistent/token");
    let rows: [&[(&str, &str)]; 11] = [
        &[nowhere],
        &[nowhere, tenant, client],
        &[nowhere, ("AZURE_TOKEN_CREDENTIALS", "dev")],
        &[nowhere, ("AZURE_TOKEN_CREDENTIALS", "AzurePowerShellCredential")],
        &[AUTHORITY, ("AZURE_TENANT_ID", "unknown"), client, SECRET],
        &[AUTHORITY, ("AZURE_TENANT_ID", "../evil"), client, SECRET],
        &[("AZURE_AUTHORITY_HOST", "http://evil.example"), tenant, client, SECRET],
        &[tenant, client, ("AZURE_CLIENT_CERTIFICATE_PATH", "/app.pem")],
        &[tenant, client, ("AZURE_USERNAME", "ada"), ("AZURE_PASSWORD", "hidden")],
        &[AUTHORITY, tenant, client, missing],
        &[METADATA, ("AZURE_CLIENT_ID", "unknown")],
    ];
    let mut messages = Vec::new();
    for variables in rows {
        messages.push(token(&server, variables).await.unwrap_err());
    }
    assert!(messages.iter().all(|message| !message.contains("hidden")), "{messages:?}");
    insta::assert_snapshot!(messages.join("\n"), @"
    no credentials of Azure; tried in this order: environment: AZURE_TENANT_ID is not set; workload identity: AZURE_FEDERATED_TOKEN_FILE is not set; managed identity: there is no metadata service: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111); Azure CLI: there is no program `az` on PATH
    no credentials of Azure; tried in this order: environment: AZURE_CLIENT_SECRET is not set; workload identity: AZURE_FEDERATED_TOKEN_FILE is not set; managed identity: there is no metadata service: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111); Azure CLI: there is no program `az` on PATH
    no credentials of Azure; tried in this order: Azure CLI: there is no program `az` on PATH
    AZURE_TOKEN_CREDENTIALS cannot be `AzurePowerShellCredential`: expected dev, prod, EnvironmentCredential, WorkloadIdentityCredential, ManagedIdentityCredential or AzureCLICredential
    the credentials of Azure (environment) cannot be used: invalid_request: AADSTS90002: Tenant not found. Trace ID: 1
    the credentials of Azure (environment) cannot be used: AZURE_TENANT_ID is no id of a tenant
    the credentials of Azure (environment) cannot be used: AZURE_AUTHORITY_HOST is not a URL that begins with https://
    the credentials of Azure (environment) cannot be used: AZURE_CLIENT_CERTIFICATE_PATH is set, and a client certificate is not supported: set AZURE_CLIENT_SECRET
    the credentials of Azure (environment) cannot be used: AZURE_USERNAME is set, and a user name with a password is not supported: set AZURE_CLIENT_SECRET
    the credentials of Azure (workload identity) cannot be used: AZURE_FEDERATED_TOKEN_FILE: cannot read /nonexistent/token: No such file or directory (os error 2)
    the credentials of Azure (managed identity) cannot be used: invalid_request: Identity not found
    ");
}

/// Shows: state.md#in-azure-blob-storage "Tokens are sent over `https` only, and are renewed before they expire."
#[tokio::test]
async fn token_is_kept_until_shortly_before_it_expires() {
    let server = start().await;
    let lasting = credentials(&server, &[AUTHORITY, APPLICATION[0], APPLICATION[1], SECRET]);
    assert_eq!(lasting.source(), None);
    for _ in 0..3 {
        assert_eq!(*lasting.token().await.unwrap(), "ey.application");
    }
    assert_eq!((server.requests().len(), lasting.source()), (1, Some("environment")));
    let short = credentials(&server, &[AUTHORITY, ("AZURE_TENANT_ID", "short"), APPLICATION[1], SECRET]);
    for _ in 0..3 {
        assert_eq!(*short.token().await.unwrap(), "ey.short");
    }
    assert_eq!(server.requests().len(), 4);
}
