//! Tests of where calls to Bedrock go, and how they are signed.

use std::time::{Duration, SystemTime};

use agentsvc_components::session::message::Role;
use agentsvc_components::turn::outcome::FailureCode;

use super::{Bedrock, region_of};
use crate::model::error::CallError;
use crate::model::provider::{DriverKind, Environment, Secret, Target};
use crate::model::testing::{With, posted, prompt, target, text};
use crate::model::wire::Post;

const KEY: &str = "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn nowhere(_: &str) -> Option<String> {
    None
}

fn in_frankfurt(name: &str) -> Option<String> {
    (name == "AWS_REGION").then(|| " eu-central-1 ".to_owned())
}

fn at(base_url: &str, model: &str, key: &str) -> Target {
    Target { model: model.into(), key: Some(Secret::new(key)), ..target(DriverKind::Bedrock, base_url) }
}

fn sent(target: &Target, environment: Environment, streaming: bool) -> Result<Post, CallError> {
    // 2015-08-30 12:36:00.
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
    let prompt = prompt(vec![(Role::User, vec![text("a")])]);
    posted(&Bedrock { now, environment }, target, &prompt, &With { streaming, ..With::default() }).map(|(post, _)| post)
}

#[test]
fn regions() {
    assert_eq!(region_of("bedrock-runtime.us-east-1.amazonaws.com"), Some("us-east-1"));
    assert_eq!(region_of("bedrock-runtime-fips.us-gov-west-1.amazonaws.com"), Some("us-gov-west-1"));
    assert_eq!(region_of("vpce-1.bedrock-runtime.eu-west-3.vpce.amazonaws.com"), Some("eu-west-3"));
    assert_eq!((region_of("proxy.example"), region_of("bedrock-runtime.example")), (None, None));
}

#[test]
fn places() {
    let base = "https://bedrock-runtime.us-east-1.amazonaws.com";
    let to = |base: &str, model: &str, environment| {
        sent(&at(base, model, KEY), environment, false).map(|post| post.url.to_string())
    };
    let id = "anthropic.claude-3-haiku-20240307-v1:0";
    assert_eq!(to(base, id, nowhere).unwrap(), format!("{base}/model/{}/converse", id.replace(':', "%3A")));
    let arn = "arn:aws:bedrock:us-east-1:123:application-inference-profile/ab";
    let encoded = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123%3Aapplication-inference-profile%2Fab";
    assert_eq!(to(base, arn, nowhere).unwrap(), format!("{base}/model/{encoded}/converse"));
    let streamed = sent(&at(base, "m", KEY), nowhere, true).unwrap();
    assert_eq!(streamed.url.path(), "/model/m/converse-stream");

    let frankfurt = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/converse";
    assert_eq!(to(base, "m", in_frankfurt).unwrap(), frankfurt, "the default endpoint follows AWS_REGION");
    let own = "https://bedrock-runtime.us-west-2.amazonaws.com";
    assert_eq!(to(own, "m", in_frankfurt).unwrap(), format!("{own}/model/m/converse"), "another one does not");
    assert_eq!(to("https://proxy.example/x/", "m", in_frankfurt).unwrap(), "https://proxy.example/x/model/m/converse");
    let error = to("https://proxy.example", "m", nowhere).unwrap_err();
    assert!(error.code == FailureCode::ProviderRefused && error.message.contains("AWS_REGION"), "{error:?}");
    assert_eq!(to("ftp://h", "m", nowhere).unwrap_err().code, FailureCode::ProviderRefused);
}

#[test]
fn signatures() {
    let header = |post: &Post, name: &str| {
        post.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    let base = "https://bedrock-runtime.us-west-2.amazonaws.com";
    let post = sent(&at(base, "a:1", KEY), nowhere, false).unwrap();
    assert_eq!(header(&post, "x-amz-date"), "20150830T123600Z");
    let authorization = header(&post, "authorization");
    let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-west-2/bedrock/aws4_request, ";
    assert!(authorization.starts_with(scope), "{authorization}");
    assert!(authorization.contains("SignedHeaders=content-type;host;x-amz-date, Signature="), "{authorization}");
    assert!(post.headers["authorization"].is_sensitive());

    let session = sent(&at(base, "a:1", &format!("{KEY}:token==")), nowhere, false).unwrap();
    assert_eq!(header(&session, "x-amz-security-token"), "token==");
    assert!(header(&session, "authorization").contains("content-type;host;x-amz-date;x-amz-security-token"));

    let bearer = sent(&at(base, "a:1", "ABSKc2VjcmV0"), nowhere, false).unwrap();
    assert_eq!(
        (header(&bearer, "authorization").as_str(), header(&bearer, "x-amz-date").as_str()),
        ("Bearer ABSKc2VjcmV0", "")
    );
    let broken = sent(&at(base, "m", "AKID:secret:to\nken"), nowhere, false).unwrap_err();
    assert!(broken.code == FailureCode::ProviderAuth && !broken.message.contains("ken\u{22}"), "{broken:?}");
}
