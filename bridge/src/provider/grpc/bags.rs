//! Encoding of property maps: one function for each row of the table in docs/spec/provider-protocol.md#5.4.

use pulumi_proto::property::secretness::copy_secretness;
use pulumi_proto::property::wire::{self, Bag, DecodeOptions, EncodeOptions, Unknowns, WireError, decode, encode};
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue};

use crate::provider::{Capabilities, LostReply, Method, ProviderError};

/// Encoder of the property maps of a call, for a provider with these capabilities.
#[derive(Clone, Copy)]
pub(super) struct Encoder {
    pub(super) method: Method,
    pub(super) capabilities: Capabilities,
}

impl Encoder {
    /// Encodes the property maps of CheckConfig and DiffConfig: all values in plain text, unknowns allowed.
    pub(super) fn encode_config(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.encode_bag(
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

    /// Encodes `args` of Configure: secrets and references are kept, independent of the capabilities.
    pub(super) fn encode_configure_args(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.encode_bag(
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

    /// Encodes `news` of Update and `properties` of Create. Outside a preview an unknown value is an error: the
    /// provider would create something else than the program requested.
    pub(super) fn encode_news(&self, bag: &PropertyMap, preview: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Reject };
        self.encode_bag(bag, self.accepted_options(unknowns))
    }

    /// Encodes both property maps of Check. Outside a preview, unknown values are omitted.
    pub(super) fn encode_check(&self, bag: &PropertyMap, preview: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        self.encode_bag(bag, self.accepted_options(unknowns))
    }

    /// Encodes `news` of Diff.
    pub(super) fn encode_diff_news(&self, bag: &PropertyMap, unknowns: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Reject };
        self.encode_bag(bag, EncodeOptions { elide_assets: true, ..self.accepted_options(unknowns) })
    }

    /// Encodes recorded inputs and outputs. Unknown values are omitted unless `unknowns` is set.
    pub(super) fn encode_recorded(&self, bag: &PropertyMap, unknowns: bool) -> Result<Option<Bag>, ProviderError> {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Drop };
        self.encode_bag(bag, EncodeOptions { elide_assets: true, ..self.accepted_options(unknowns) })
    }

    /// Encodes the arguments of Invoke and the query of List. Unknown values are omitted.
    pub(super) fn encode_arguments(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        self.encode_bag(bag, self.accepted_options(Unknowns::Drop))
    }

    /// Encodes the arguments of Call: secrets and references are kept, independent of the capabilities.
    pub(super) fn encode_call_arguments(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        let options = EncodeOptions {
            keep_secrets: true,
            keep_resources: true,
            keep_outputs: self.capabilities.accept_outputs,
            ..self.accepted_options(Unknowns::Keep)
        };
        self.encode_bag(bag, options)
    }

    /// Encodes the inputs of Construct.
    pub(super) fn encode_construct_inputs(&self, bag: &PropertyMap) -> Result<Option<Bag>, ProviderError> {
        let keep_outputs = self.capabilities.accept_outputs;
        self.encode_bag(bag, EncodeOptions { keep_outputs, ..self.accepted_options(Unknowns::Keep) })
    }

    /// Encodes `replacement_trigger` of Construct.
    pub(super) fn encode_trigger(
        &self,
        value: &PropertyValue,
        preview: bool,
    ) -> Result<Option<wire::Value>, ProviderError> {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        let options = EncodeOptions { unknowns, keep_bytes: false, ..EncodeOptions::EVERYTHING };
        wire::encode_value(value, &options).map_err(|error| self.encode_error(&error))
    }

    fn accepted_options(&self, unknowns: Unknowns) -> EncodeOptions {
        EncodeOptions {
            unknowns,
            keep_secrets: self.capabilities.accept_secrets,
            keep_resources: self.capabilities.accept_resources,
            keep_outputs: false,
            keep_bytes: self.capabilities.accept_byte_strings,
            elide_assets: false,
        }
    }

    /// Encodes a property map. An empty map is sent as well: Node fails on a missing one.
    fn encode_bag(&self, bag: &PropertyMap, options: EncodeOptions) -> Result<Option<Bag>, ProviderError> {
        encode(bag, &options).map(Some).map_err(|error| self.encode_error(&error))
    }

    /// Returns the error of a failed encoding. The resource is unchanged because nothing was sent.
    fn encode_error(&self, error: &WireError) -> ProviderError {
        ProviderError::Failed {
            method: self.method,
            message: error.to_string(),
            indeterminate: false,
            source: None,
            details: None,
        }
    }
}

/// Decoder of the encoded maps of a reply.
#[derive(Clone, Copy)]
pub(super) struct Decoder {
    pub(super) method: Method,
    unknowns: Unknowns,
    keep_outputs: bool,
}

impl Decoder {
    /// Returns a decoder that keeps unknown values if `unknowns` is set and otherwise rejects them. Check, Create and
    /// Update keep them in a preview, CheckConfig always, Read and Invoke never.
    pub(super) fn new(method: Method, unknowns: bool) -> Self {
        let unknowns = if unknowns { Unknowns::Keep } else { Unknowns::Reject };
        Self { method, unknowns, keep_outputs: false }
    }

    /// Returns a decoder for Construct and Call. It keeps output values, and omits unknown values outside a preview.
    pub(super) fn for_component(method: Method, preview: bool) -> Self {
        let unknowns = if preview { Unknowns::Keep } else { Unknowns::Drop };
        Self { method, unknowns, keep_outputs: true }
    }

    /// Returns a decoder for views. It omits unknown values outside a preview.
    pub(super) fn for_view(method: Method, preview: bool) -> Self {
        Self { keep_outputs: false, ..Self::for_component(method, preview) }
    }

    /// Decodes an encoded map. Returns an empty map if it is missing.
    pub(super) fn decode_bag(&self, bag: Option<Bag>) -> Result<PropertyMap, ProviderError> {
        Ok(self.decode_optional_bag(bag)?.unwrap_or_default())
    }

    /// Decodes an encoded map. Returns `None` if it is missing.
    pub(super) fn decode_optional_bag(&self, bag: Option<Bag>) -> Result<Option<PropertyMap>, ProviderError> {
        let options = DecodeOptions {
            unknowns: self.unknowns,
            keep_secrets: true,
            keep_resources: true,
            keep_outputs: self.keep_outputs,
        };
        let invalid =
            |error: WireError| ProviderError::invalid_reply(self.method, LostReply::from(&error.problem), error);
        bag.map(|bag| decode(&bag, &options).map_err(invalid)).transpose()
    }
}

/// Marks values as secret again that were sent in plain text to a provider that does not accept secrets.
pub(super) fn restore_secrets(capabilities: Capabilities, sent: &PropertyMap, received: &mut PropertyMap) {
    if !capabilities.accept_secrets {
        copy_secretness(sent, received);
    }
}

/// Restores the content of assets and archives that the provider returned with their hash only, from the values that
/// were sent (docs/spec/provider-protocol.md#5.6).
pub(super) fn restore_contents(sent: &PropertyMap, received: &mut PropertyMap) {
    let mut sent_contents = Contents::default();
    sent.values().for_each(|value| sent_contents.collect(value));
    if !sent_contents.assets.is_empty() || !sent_contents.archives.is_empty() {
        received.values_mut().for_each(|value| {
            *value = sent_contents.restored(std::mem::replace(value, PropertyValue::Null));
        });
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
