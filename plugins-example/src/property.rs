//! Properties. One table per type defines Check, Diff and schema of the type, so that they are consistent.

/// Property of a resource, a function or the configuration. All properties of this package are scalars.
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Description for the schema: sentences, in Markdown.
    pub(crate) description: &'static str,
    pub(crate) required: bool,
    /// Value that Check adds if the property is absent.
    pub(crate) default: Option<Default>,
    /// True if a change replaces the resource.
    pub(crate) replaces: bool,
    /// True if the property is always a secret. Other properties are secret if they depend on secrets.
    pub(crate) secret: bool,
}

/// Type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Boolean,
}

/// Default value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    String(&'static str),
    Boolean(bool),
}

impl Property {
    const fn new(name: &'static str, kind: Kind, description: &'static str, required: bool) -> Self {
        Self { name, kind, description, required, default: None, replaces: false, secret: false }
    }

    /// Creates a required input, or an output that is always present.
    pub(crate) const fn required(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, description, true)
    }

    /// Creates an optional input.
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
    /// Returns the type with its article, for messages.
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
        }
    }
}
