//! Packages of the core types.

use crate::registry::recipe::Package;

pub(super) const AWS: Package = Package { name: "aws" };
pub(super) const GCP: Package = Package { name: "gcp" };
pub(super) const KUBERNETES: Package = Package { name: "kubernetes" };
pub(super) const RANDOM: Package = Package { name: "random" };
pub(super) const CLOUDFLARE: Package = Package { name: "cloudflare" };
pub(super) const ATLAS: Package = Package { name: "mongodbatlas" };
