//! What a property is. One table per type drives its Check, its Diff and its schema, so that they cannot disagree.

/// A property of a resource, a function or the configuration. All of ours are scalars.
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// For the schema: sentences, in Markdown.
    pub(crate) description: &'static str,
    pub(crate) required: bool,
    /// What Check fills in where nothing is given.
    pub(crate) default: Option<Default>,
    /// A change of it means another resource.
    pub(crate) replaces: bool,
    /// Always a secret (others are secret when they are made of secrets).
    pub(crate) secret: bool,
}

/// The type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Boolean,
}

/// A default value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    String(&'static str),
    Boolean(bool),
}

impl Property {
    const fn new(name: &'static str, kind: Kind, description: &'static str, required: bool) -> Self {
        Self { name, kind, description, required, default: None, replaces: false, secret: false }
    }

    /// An input that must be given, or an output that is always there.
    pub(crate) const fn required(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, description, true)
    }

    /// An input that need not be given.
    pub(crate) const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, description, false)
    }

    pub(crate) const fn default(mut self, default: Default) -> Self {
        self.default = Some(default);
        self
    }

    pub(crate) const fn replaces(mut self) -> Self {
        self.replaces = true;
        self
    }

    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

impl Kind {
    /// The type with its article, for messages.
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
        }
    }
}
