//! `sc plugin ls NAME`: all that is known about one plugin, and why it is used in this version.

use bridge::plugin::{
    DigestOrigin, Platform, PluginConfig, PluginSource, ResolvedAsset, ResolvedPackage, ResolvedRelease, WantedVersion,
};
use bridge::source::without_credentials;
use provisioner::operation::{PluginSettings, Stacks};
use serde_json::json;

use super::plugin_lock::check_names;
use crate::cli::display::{Line, bytes};
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;

/// Facts about a plugin, each with its name.
struct Details(Vec<(&'static str, String)>);

/// Prints what is known about a plugin of the requested stacks. Starts and fetches nothing.
pub(super) async fn print(ui: &Ui, stacks: &Stacks, settings: &PluginSettings, name: &str) -> anyhow::Result<Exit> {
    check_names(stacks, &[name.to_owned()])?;
    let mut declared: Vec<(&PluginConfig, Vec<&str>)> = Vec::new();
    for stack in stacks.requested() {
        for plugin in
            stack.plugins.iter().map(|declared| &declared.plugin).filter(|plugin| plugin.name.as_str() == name)
        {
            match declared.iter_mut().find(|(known, _)| known.source == plugin.source) {
                Some((_, users)) => users.push(&stack.name),
                None => declared.push((plugin, vec![&stack.name])),
            }
        }
    }
    let mut lines = Vec::new();
    for (plugin, users) in declared {
        let Details(facts) = details(settings, plugin, &users).await?;
        if ui.output.results_are_json() {
            let object =
                facts.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect::<serde_json::Map<_, _>>();
            lines.push(Line::plain(serde_json::Value::Object(object).to_string()));
        } else {
            lines.extend(facts.into_iter().map(|(name, text)| Line::plain(format!("{name:<17}{text}"))));
        }
    }
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

async fn details(settings: &PluginSettings, plugin: &PluginConfig, users: &[&str]) -> anyhow::Result<Details> {
    let (place, wanted) = origin(&plugin.source);
    let mut facts = vec![
        ("plugin", plugin.name.to_string()),
        ("stacks", users.join(", ")),
        ("source", format!("{} {place}", plugin.source.kind())),
    ];
    if !wanted.is_empty() {
        facts.push(("wanted", wanted.to_owned()));
    }
    let key = settings.sources.lock_key(plugin);
    let locked = key.as_ref().map(|key| settings.sources.lock.find_exact(key)).transpose()?.flatten();
    if let Some((package, is_exact)) = &locked {
        facts.push(("locked", package.revision().to_owned()));
        if let ResolvedPackage::Release(release) = package {
            facts.extend(release_facts(release));
        }
        facts.push(("reason", reason(plugin, *is_exact)));
    }
    if let Some(key) = settings.sources.terraform_lock_key(plugin) {
        facts.push(("provider", format!("{} {}", key.source, key.wanted)));
        if let Some((ResolvedPackage::Release(release), _)) = settings.sources.lock.find_exact(&key)? {
            let of_provider = release_facts(&release).into_iter().map(|(name, text)| format!("{name} {text}"));
            let words: Vec<String> = [release.tag.clone()].into_iter().chain(of_provider).collect();
            facts.push(("provider is", words.join("; ")));
        }
    }
    let known = settings.sources.known_digest(plugin).await.unwrap_or_default();
    let is_here = if known.is_some() { "yes" } else { "no" };
    facts.push(("on this machine", is_here.to_owned()));
    if let Some(digest) =
        plugin.source.checksum().and_then(|checksum| checksum.for_platform(Platform::current())).or(known)
    {
        facts.push(("checksum", digest.to_string()));
    }
    Ok(Details(facts))
}

fn release_facts(release: &ResolvedRelease) -> Vec<(&'static str, String)> {
    let origins: std::collections::BTreeSet<DigestOrigin> =
        release.assets.values().filter_map(|asset| Some(asset.digest?.1)).collect();
    let words: Vec<&str> = origins.into_iter().map(DigestOrigin::as_str).collect();
    let platforms: Vec<String> = release.assets.keys().map(ToString::to_string).collect();
    let own = Platform::current().and_then(|platform| release.assets.get(&platform));
    let size = own.and_then(|ResolvedAsset { name, size, .. }| Some(format!("{} ({name})", bytes((*size)?))));
    let facts = [
        ("released", release.released.clone()),
        ("verified by", Some(words.join(", ")).filter(|words| !words.is_empty())),
        ("signer", release.signer.clone()),
        ("platforms", Some(platforms.join(", ")).filter(|platforms| !platforms.is_empty())),
        ("size", size),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// Returns why a plugin is used in the version that is locked, in words.
fn reason(plugin: &PluginConfig, is_exact: bool) -> String {
    let update = format!("`sc plugin update {}` looks for a newer one", plugin.name);
    match plugin.source.wanted() {
        Some(wanted) if !is_exact => format!("it is locked for another declaration, and fits {wanted}"),
        Some(WantedVersion::Range(range)) => {
            format!("it was the highest version in {range} when it was locked; {update}")
        }
        Some(WantedVersion::Latest) => format!("it was the latest release when it was locked; {update}"),
        Some(WantedVersion::Named(name)) => format!("the declaration names {name}"),
        None => String::new(),
    }
}

/// Returns the location of a plugin's source, and the version or revision that it declares.
pub(super) fn origin(source: &PluginSource) -> (String, &str) {
    match source {
        PluginSource::Local(local) => (local.path.display().to_string(), ""),
        PluginSource::GithubRelease(release) => (without_credentials(&release.repository), release.version.as_str()),
        PluginSource::Git(git) => (without_credentials(&git.url), git.version.as_str()),
        PluginSource::Installed(installed) => {
            (installed.path.clone(), installed.version.as_ref().map_or("", WantedVersion::as_str))
        }
    }
}
