//! Build of a CI system that runs this program, from the variables of the system, under the keys of Pulumi's history files.

use std::collections::BTreeMap;

/// Variable that switches the detection off, as in `pulumi`.
const SWITCHED_OFF: &str = "PULUMI_DISABLE_CI_DETECTION";
/// Prefix of the reference of a pull request on GitHub.
const PULL_PREFIX: &str = "refs/pull/";

/// CI system, with the names of its variables; an empty name if it has none.
struct CiSystem {
    /// Name of the system as Pulumi has it; empty if a variable names it.
    name: &'static str,
    /// Variable that is set if the system runs this program.
    marker: &'static str,
    id: &'static str,
    number: &'static str,
    /// Kind of the event that has started the build.
    kind: &'static str,
    url: &'static str,
    commit: &'static str,
    branch: &'static str,
    pull_request: &'static str,
}

const SYSTEMS: [CiSystem; 10] = [
    CiSystem {
        name: "",
        marker: "PULUMI_CI_SYSTEM",
        id: "PULUMI_CI_BUILD_ID",
        number: "",
        kind: "PULUMI_CI_BUILD_TYPE",
        url: "PULUMI_CI_BUILD_URL",
        commit: "PULUMI_CI_PULL_REQUEST_SHA",
        branch: "",
        pull_request: "PULUMI_PR_NUMBER",
    },
    CiSystem {
        name: "GitHub Actions",
        marker: "GITHUB_ACTIONS",
        id: "GITHUB_RUN_ID",
        number: "GITHUB_RUN_NUMBER",
        kind: "GITHUB_EVENT_NAME",
        url: "",
        commit: "GITHUB_SHA",
        branch: "GITHUB_REF",
        pull_request: "",
    },
    CiSystem {
        name: "GitLab CI/CD",
        marker: "GITLAB_CI",
        id: "CI_JOB_ID",
        number: "CI_PIPELINE_IID",
        kind: "CI_PIPELINE_SOURCE",
        url: "CI_JOB_URL",
        commit: "CI_COMMIT_SHA",
        branch: "CI_COMMIT_REF_NAME",
        pull_request: "CI_MERGE_REQUEST_IID",
    },
    CiSystem {
        name: "Azure Pipelines",
        marker: "TF_BUILD",
        id: "BUILD_BUILDID",
        number: "BUILD_BUILDNUMBER",
        kind: "BUILD_REASON",
        url: "",
        commit: "BUILD_SOURCEVERSION",
        branch: "BUILD_SOURCEBRANCH",
        pull_request: "SYSTEM_PULLREQUEST_PULLREQUESTID",
    },
    CiSystem {
        name: "Bitbucket Pipelines",
        marker: "BITBUCKET_BUILD_NUMBER",
        id: "BITBUCKET_BUILD_NUMBER",
        number: "",
        kind: "",
        url: "",
        commit: "BITBUCKET_COMMIT",
        branch: "BITBUCKET_BRANCH",
        pull_request: "BITBUCKET_PR_ID",
    },
    CiSystem {
        name: "Buildkite",
        marker: "BUILDKITE",
        id: "BUILDKITE_BUILD_ID",
        number: "BUILDKITE_BUILD_NUMBER",
        kind: "BUILDKITE_SOURCE",
        url: "BUILDKITE_BUILD_URL",
        commit: "BUILDKITE_COMMIT",
        branch: "BUILDKITE_BRANCH",
        pull_request: "BUILDKITE_PULL_REQUEST",
    },
    CiSystem {
        name: "CircleCI",
        marker: "CIRCLECI",
        id: "CIRCLE_BUILD_NUM",
        number: "",
        kind: "",
        url: "CIRCLE_BUILD_URL",
        commit: "CIRCLE_SHA1",
        branch: "CIRCLE_BRANCH",
        pull_request: "CIRCLE_PR_NUMBER",
    },
    CiSystem {
        name: "Travis CI",
        marker: "TRAVIS",
        id: "TRAVIS_JOB_ID",
        number: "TRAVIS_JOB_NUMBER",
        kind: "TRAVIS_EVENT_TYPE",
        url: "TRAVIS_BUILD_WEB_URL",
        commit: "TRAVIS_COMMIT",
        branch: "TRAVIS_BRANCH",
        pull_request: "TRAVIS_PULL_REQUEST",
    },
    CiSystem {
        name: "AWS CodeBuild",
        marker: "CODEBUILD_BUILD_ARN",
        id: "CODEBUILD_BUILD_ID",
        number: "CODEBUILD_BUILD_NUMBER",
        kind: "CODEBUILD_WEBHOOK_EVENT",
        url: "CODEBUILD_PUBLIC_BUILD_URL",
        commit: "CODEBUILD_RESOLVED_SOURCE_VERSION",
        branch: "CODEBUILD_WEBHOOK_HEAD_REF",
        pull_request: "",
    },
    CiSystem {
        name: "Jenkins",
        marker: "JENKINS_URL",
        id: "BUILD_NUMBER",
        number: "",
        kind: "",
        url: "BUILD_URL",
        commit: "GIT_COMMIT",
        branch: "GIT_BRANCH",
        pull_request: "CHANGE_ID",
    },
];

/// Returns the details of the build that runs this program; none outside of the known systems.
pub(crate) fn details(environment: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    let value = |name: &str| environment.get(name).map(String::as_str).unwrap_or_default();
    let system = SYSTEMS.iter().find(|system| !value(system.marker).is_empty());
    let Some(system) = system.filter(|_| value(SWITCHED_OFF).is_empty()) else { return Vec::new() };
    let name = if system.name.is_empty() { value(system.marker) } else { system.name };
    let (branch, mut pull_request) = (value(system.branch), value(system.pull_request));
    let mut url = value(system.url).to_owned();
    if system.marker == "GITHUB_ACTIONS" {
        let [server, repository, run] = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", system.id].map(value);
        url = format!("{server}/{repository}/actions/runs/{run}");
        pull_request = branch.strip_prefix(PULL_PREFIX).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    }
    // Some systems say so if there is none.
    let pull_request = if pull_request == "false" { "" } else { pull_request };
    let commit = value(system.commit);
    let branch = match branch {
        "" => String::new(),
        reference if reference.starts_with("refs/") => reference.to_owned(),
        name => format!("refs/heads/{name}"),
    };
    let details = [
        ("ci.system", name),
        ("ci.build.id", value(system.id)),
        ("ci.build.number", value(system.number)),
        ("ci.build.type", value(system.kind)),
        ("ci.build.url", &url),
        ("ci.pr.number", pull_request),
        ("ci.pr.headSHA", if pull_request.is_empty() { "" } else { commit }),
        ("git.head", commit),
        ("git.headName", &branch),
    ];
    details.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key, value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> String {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = details(&environment);
        found.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn build_is_described_by_the_variables_of_its_system() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "reef/tank"),
            ("GITHUB_RUN_ID", "7"),
            ("GITHUB_SHA", "1f2e"),
            ("GITHUB_REF", "refs/pull/12/merge"),
        ];
        assert_eq!(
            found(&github),
            "ci.system=GitHub Actions ci.build.id=7 ci.build.url=https://github.com/reef/tank/actions/runs/7 ci.pr.number=12 \
             ci.pr.headSHA=1f2e git.head=1f2e git.headName=refs/pull/12/merge"
        );
        let buildkite = [("BUILDKITE", "true"), ("BUILDKITE_BRANCH", "main"), ("BUILDKITE_PULL_REQUEST", "false")];
        assert_eq!(found(&buildkite), "ci.system=Buildkite git.headName=refs/heads/main");
        assert_eq!(found(&[("PULUMI_CI_SYSTEM", "mine"), ("TRAVIS", "true")]), "ci.system=mine");
        assert_eq!(found(&[]), "");
        assert_eq!(found(&[github.as_slice(), &[("PULUMI_DISABLE_CI_DETECTION", "1")]].concat()), "");
    }
}
