//! How property bags travel: one function for each row of the table in the provider protocol, section 5.4.

use pulumi_proto::property::wire::{
    self, Bag, DecodeOptions, EncodeOptions, Unknowns, WireError, copy_secretness, decode, encode,
};
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue};

use crate::provider::{Capabilities, Method, ProviderError};

/// Encodes the bags of one call, for a provider that can take what its capabilities say.
#[derive(Clone, Copy)]
pub(super) struct Encoder {
    pub(super) method: Method,
    pub(super) capabilities: Capabilities,
}

impl Encoder {
    /// CheckConfig and DiffConfig: everything plain, unknowns allowed.
    pub(super) fn config(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.bag(
            bag,
            EncodeOptions {
                unknowns: Unknowns::Keep,
                keep_secrets: false,
                keep_resources: false,
                keep_outputs: false,
                keep_bytes: false,
                elide_assets: false,
            },
        )
    }

    /// Configure's `args`: secrets and references whatever the provider will say it takes.
    pub(super) fn configuration(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.bag(
            bag,
            EncodeOptions {
                unknowns: Unknowns::Reject,
                keep_secrets: true,
                keep_resources: true,
                keep_outputs: false,
                keep_bytes: false,
                elide_assets: false,
            },
        )
    }

    /// What the program wants: `news` of Update, `properties` of Create. An unknown outside a preview would
    /// make something else than what was asked for: it is refused.
    pub(super) fn wanted(&self, bag: &PropertyMap, preview: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Reject };
        self.bag(bag, self.as_accepted(unknowns))
    }

    /// Both bags of Check: outside a preview, what is unknown is left out.
    pub(super) fn checked(&self, bag: &PropertyMap, preview: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        self.bag(bag, self.as_accepted(unknowns))
    }

    /// `news` of Diff.
    pub(super) fn wanted_elided(&self, bag: &PropertyMap, unknowns: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Reject };
        self.bag(bag, EncodeOptions { elide_assets: true, ..self.as_accepted(unknowns) })
    }

    /// What is recorded, as Diff sends it: unknowns only where it takes them.
    pub(super) fn recorded(&self, bag: &PropertyMap, unknowns: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Drop };
        self.bag(bag, EncodeOptions { elide_assets: true, ..self.as_accepted(unknowns) })
    }

    /// Arguments of Invoke, the query of List: what is unknown is left out.
    pub(super) fn arguments(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.bag(bag, self.as_accepted(Unknowns::Drop))
    }

    /// Arguments of Call: secrets and references whatever the provider takes.
    pub(super) fn call_arguments(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        let options = EncodeOptions {
            keep_secrets: true,
            keep_resources: true,
            keep_outputs: self.capabilities.accept_outputs,
            ..self.as_accepted(Unknowns::Keep)
        };
        self.bag(bag, options)
    }

    /// Inputs of Construct.
    pub(super) fn component(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        let keep_outputs = self.capabilities.accept_outputs;
        self.bag(bag, EncodeOptions { keep_outputs, ..self.as_accepted(Unknowns::Keep) })
    }

    /// Construct's `replacement_trigger`.
    pub(super) fn trigger(&self, value: &PropertyValue, preview: bool) -> Result<Option<wire::Value>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        let options = EncodeOptions { unknowns, keep_bytes: false, ..EncodeOptions::EVERYTHING };
        wire::encode_value(value, &options).map_err(|error| self.refused(&error))
    }

    fn as_accepted(&self, unknowns: Unknowns) -> EncodeOptions {
        EncodeOptions {
            unknowns,
            keep_secrets: self.capabilities.accept_secrets,
            keep_resources: self.capabilities.accept_resources,
            keep_outputs: false,
            keep_bytes: self.capabilities.accept_byte_strings,
            elide_assets: false,
        }
    }

    /// Every bag is sent, an empty one too: Node fails on absent ones.
    fn bag(&self, bag: &PropertyMap, options: EncodeOptions) -> Result<Option<Bag>, ProviderError> {
        encode(bag, &options).map(Some).map_err(|error| self.refused(&error))
    }

    /// Nothing was sent: nothing was touched.
    fn refused(&self, error: &WireError) -> ProviderError {
        ProviderError::Failed { method: self.method, message: error.to_string(), indeterminate: false, source: None }
    }
}

/// Decodes the bags of one answer.
#[derive(Clone, Copy)]
pub(super) struct Decoder {
    pub(super) method: Method,
    unknowns: Unknowns,
    keep_outputs: bool,
}

impl Decoder {
    /// Unknowns are taken in a preview and are an error otherwise: Check, Create, Update. (CheckConfig: always taken;
    /// Read, Invoke: never.)
    pub(super) fn new(method: Method, unknowns: bool) -> Self {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Reject };
        Self { method, unknowns, keep_outputs: false }
    }

    /// Construct and Call: output values stay; unknowns vanish outside a preview.
    pub(super) fn of_component(method: Method, preview: bool) -> Self {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        Self { method, unknowns, keep_outputs: true }
    }

    /// Views: unknowns vanish outside a preview.
    pub(super) fn of_view(method: Method, preview: bool) -> Self {
        Self { keep_outputs: false, ..Self::of_component(method, preview) }
    }

    /// An absent bag is an empty one.
    pub(super) fn bag(&self, bag: Option<Bag>) -> Result<PropertyMap, ProviderError> {
        Ok(self.optional(bag)?.unwrap_or_default())
    }

    /// An absent bag says something.
    pub(super) fn optional(&self, bag: Option<Bag>) -> Result<Option<PropertyMap>, ProviderError> {
        let options = DecodeOptions {
            unknowns: self.unknowns,
            keep_secrets: true,
            keep_resources: true,
            keep_outputs: self.keep_outputs,
        };
        let invalid = |error: WireError| ProviderError::Protocol { method: self.method, reason: error.to_string() };
        bag.map(|bag| decode(&bag, &options).map_err(invalid)).transpose()
    }
}

/// Marks again what a provider that takes no secrets was sent plain.
pub(super) fn restore_secrets(capabilities: Capabilities, sent: &PropertyMap, received: &mut PropertyMap) {
    if !capabilities.accept_secrets {
        copy_secretness(sent, received);
    }
}

/// Gives assets and archives that came back as a mere hash the contents they were sent with (provider protocol,
/// section 5.6).
pub(super) fn restore_contents(sent: &PropertyMap, received: &mut PropertyMap) {
    let mut known = Contents::default();
    sent.values().for_each(|value| known.collect(value));
    if !known.assets.is_empty() || !known.archives.is_empty() {
        received.values_mut().for_each(|value| *value = known.restored(std::mem::replace(value, PropertyValue::Null)));
    }
}

#[derive(Default)]
struct Contents<'a> {
    assets: Vec<&'a Asset>,
    archives: Vec<&'a Archive>,
}

impl<'a> Contents<'a> {
    fn collect(&mut self, value: &'a PropertyValue) {
        match value {
            PropertyValue::Asset(asset) if asset.content != AssetContent::Elided => self.assets.push(asset),
            PropertyValue::Archive(archive) if archive.content != ArchiveContent::Elided => self.archives.push(archive),
            PropertyValue::List(items) => items.iter().for_each(|item| self.collect(item)),
            PropertyValue::Map(map) => map.values().for_each(|member| self.collect(member)),
            PropertyValue::Secret(secret) => self.collect(secret.expose()),
            _ => {}
        }
    }

    fn restored(&self, value: PropertyValue) -> PropertyValue {
        match value {
            PropertyValue::Asset(asset) if asset.content == AssetContent::Elided => {
                let known = self.assets.iter().find(|known| known.hash == asset.hash);
                PropertyValue::Asset(known.map_or(asset, |known| (*known).clone()))
            }
            PropertyValue::Archive(archive) if archive.content == ArchiveContent::Elided => {
                let known = self.archives.iter().find(|known| known.hash == archive.hash);
                PropertyValue::Archive(known.map_or(archive, |known| (*known).clone()))
            }
            PropertyValue::List(items) => {
                PropertyValue::List(items.into_iter().map(|item| self.restored(item)).collect())
            }
            PropertyValue::Map(map) => {
                PropertyValue::Map(map.into_iter().map(|(key, member)| (key, self.restored(member))).collect())
            }
            PropertyValue::Secret(secret) => PropertyValue::secret_verbatim(self.restored(secret.into_exposed())),
            other => other,
        }
    }
}
