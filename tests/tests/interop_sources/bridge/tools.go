//go:build tools

// Names of the programs that the suite builds.
package main

import (
	_ "github.com/pulumi/pulumi-terraform-bridge/v3/dynamic"
	_ "github.com/pulumi/pulumi-terraform-bridge/v3/dynamic/test/pfprovider"
	_ "github.com/pulumi/pulumi-terraform-bridge/v3/dynamic/test/sdkv1provider"
)
