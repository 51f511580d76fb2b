//! Sources of credentials of AWS, each with a server of the test in its place.

use std::fs;
use std::path::Path;

use state::store::ObjectErrorKind;
use tests::http::{HttpServer, Request, Response};

use crate::s3::{LIMIT, object, open_in, serve, text};
use crate::s3_credentials::access_keys;

type Variables<'a> = &'a [(&'a str, &'a str)];

const ROLE: &str = "arn:aws:iam::123456789012:role/ci";

/// Profiles in `~/.aws/config`; the name of the cached token of a login is the SHA-1 digest of its session.
const PROFILES: &str = "[profile login]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = dev\n\
     [sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1\n\
     [profile chained]\nrole_arn = arn:aws:iam::123456789012:role/ci\nsource_profile = keys\n\
     [profile keys]\naws_access_key_id = AKIAKEYS\naws_secret_access_key = hidden\n\
     [profile command]\ncredential_process = echo \
     '{\"Version\":1,\"AccessKeyId\":\"AKIACOMMAND\",\"SecretAccessKey\":\"hidden\"}'\n";
const TOKEN_FILE: &str = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";

/// Replies for STS, SSO and the metadata of an instance.
fn reply(request: &Request, refuses: bool) -> Response {
    let body = String::from_utf8_lossy(&request.body);
    let (path, _) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if refuses {
        let text = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>ada may not assume it\
             </Message></Error></ErrorResponse>";
        return Response::new(403, text).with("Content-Type", "text/xml");
    }
    if body.contains("Action=AssumeRole") {
        let (action, key) = if body.contains("Action=AssumeRoleWithWebIdentity") {
            assert!(body.contains("WebIdentityToken=hidden"), "{body}");
            ("AssumeRoleWithWebIdentity", "AKIAWEB")
        } else {
            ("AssumeRole", "AKIAROLE")
        };
        let text = format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><AssumedRoleUser>\
             <Arn>arn:aws:sts::123456789012:assumed-role/ci/sc</Arn><AssumedRoleId>A:sc</AssumedRoleId></AssumedRoleUser>\
             <Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey>\
             <SessionToken>hidden</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>\
             </{action}Result></{action}Response>"
        );
        return Response::new(200, text).with("Content-Type", "text/xml");
    }
    let keys = |key: &str| {
        format!(
            "\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"hidden\",\"Token\":\"hidden\",\"Expiration\":\"2099-01-01T00:00:00Z\""
        )
    };
    match path {
        "/federation/credentials" => {
            assert_eq!(request.header("x-amz-sso_bearer_token"), Some("hidden"));
            let expiration = 4_070_908_800_000_u64;
            let text = format!(
                "{{\"roleCredentials\":{{\"accessKeyId\":\"AKIALOGIN\",\"secretAccessKey\":\"hidden\",\
                 \"sessionToken\":\"hidden\",\"expiration\":{expiration}}}}}"
            );
            Response::new(200, text).with("Content-Type", "application/json")
        }
        "/latest/api/token" => Response::new(200, "t").with("x-aws-ec2-metadata-token-ttl-seconds", 21600),
        "/latest/meta-data/iam/security-credentials/" => Response::new(200, "node"),
        "/latest/meta-data/iam/security-credentials/node" => {
            Response::new(200, format!("{{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",{}}}", keys("AKIANODE")))
        }
        _ => Response::new(404, ""),
    }
}

async fn issue(refuses: bool) -> HttpServer {
    HttpServer::start(move |request| std::future::ready(reply(&request, refuses))).await.unwrap()
}

fn write_profiles(home: &Path, expiration: &str) {
    fs::create_dir_all(home.join(".aws/sso/cache")).unwrap();
    fs::write(home.join(".aws/config"), PROFILES).unwrap();
    let token = format!(
        "{{\"startUrl\":\"https://corp.awsapps.com/start\",\"region\":\"us-east-1\",\"accessToken\":\"hidden\",\
         \"expiresAt\":\"{expiration}\"}}"
    );
    fs::write(home.join(TOKEN_FILE), token).unwrap();
    fs::write(home.join("token"), "hidden").unwrap();
}

/// Shows: state.md#in-s3 "Credentials are those of the environment, else of the profile (keys, SSO, role, process), of
///   a web identity, of the container, of the instance"
/// Shows: state.md#in-s3 "The error names the source that fails."
#[tokio::test]
async fn each_source_signs_requests() {
    let home = tempfile::tempdir().unwrap();
    write_profiles(home.path(), "2099-01-01T00:00:00Z");
    let issuer = issue(false).await;
    let token = home.path().join("token");
    let keys = [("AWS_ACCESS_KEY_ID", "AKIAENV"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
    let web = [("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()), ("AWS_ROLE_ARN", ROLE)];
    let role = format!("&role={ROLE}");
    let cases: [(&str, Variables<'_>, &str); 8] = [
        ("", &keys, "AKIAENV"),
        (&role, &keys, "AKIAROLE"),
        ("&profile=chained", &keys, "AKIAROLE"),
        ("&profile=login", &keys, "AKIALOGIN"),
        ("&profile=command", &[], "AKIACOMMAND"),
        ("", &[("AWS_PROFILE", "login")], "AKIALOGIN"),
        ("", &web, "AKIAWEB"),
        ("", &[], "AKIANODE"),
    ];
    for (query, variables, access_key) in cases {
        let server = serve([object("{}", "\"1\"")]).await;
        let issuer_url = issuer.url();
        let mut all = vec![
            ("AWS_ENDPOINT_URL_STS", issuer_url.as_str()),
            ("AWS_ENDPOINT_URL_SSO", &issuer_url),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &issuer_url),
        ];
        all.extend(variables);
        let objects = open_in(home.path(), &format!("{}{query}", server.url()), &all).await;
        let read = objects.read("a.json", LIMIT).await;
        let read = read.map_err(|error| format!("{query} {variables:?}: {}", text(&error))).unwrap();
        assert!(read.is_some());
        assert_eq!(access_keys(&server), [access_key], "{query} {variables:?}");
    }
}

/// Shows: state.md#in-s3 "Credentials are those of the environment, else of the profile (keys, SSO, role, process), of
///   a web identity, of the container, of the instance"
/// Shows: state.md#in-s3 "The error names the source that fails."
#[tokio::test]
async fn source_that_fails_is_named() {
    let home = tempfile::tempdir().unwrap();
    write_profiles(home.path(), "2020-01-01T00:00:00Z");
    let issuer = issue(true).await;
    let token = home.path().join("token");
    let keys = [("AWS_ACCESS_KEY_ID", "AKIAENV"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
    let web = [("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()), ("AWS_ROLE_ARN", ROLE)];
    let role = format!("&role={ROLE}");
    let metadata = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", issuer.url())];
    let metadata = metadata.each_ref().map(|(name, url)| (*name, url.as_str()));
    let cases: [(&str, Variables<'_>, &str); 4] = [
        (
            &role,
            &keys,
            "cannot load credentials of AWS (role `ROLE`, assumed with: environment, profile `default`): AccessDenied: ada may \
             not assume it",
        ),
        (
            "&profile=login",
            &[],
            "cannot load credentials of AWS (profile `login`): the SSO token has expired and cannot be refreshed; run `aws sso \
             login` for the profile",
        ),
        (
            "",
            &web,
            "cannot load credentials of AWS (profile `default`, web identity in `TOKEN`): AccessDenied: ada may not assume it",
        ),
        (
            "",
            &metadata,
            "no credentials of AWS; tried in this order: environment: AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set; \
             profile: no credentials; web identity: no token; container (ECS, EKS): not in a container of ECS or EKS; instance \
             (EC2): failed to load IMDS session token: service error: request forbidden: IMDS is disabled or the caller has \
             insufficient permissions.",
        ),
    ];
    for (query, variables, expected) in cases {
        let server = serve([]).await;
        let issuer_url = issuer.url();
        let mut all = vec![("AWS_ENDPOINT_URL_STS", issuer_url.as_str())];
        all.extend(variables);
        let objects = open_in(home.path(), &format!("{}{query}", server.url()), &all).await;
        let error = objects.read("a.json", LIMIT).await.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::Credentials, "{}", text(&error));
        let text = text(&error).replace(token.to_str().unwrap(), "TOKEN").replace(ROLE, "ROLE");
        assert_eq!(text, format!("cannot read s3://reef/team/a.json: {expected}"));
    }
}
