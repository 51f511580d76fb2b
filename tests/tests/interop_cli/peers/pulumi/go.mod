module peers

go 1.26.6

require (
	github.com/pulumi/pulumi/pkg/v3 v3.260.0
	github.com/pulumi/pulumi/sdk/v3 v3.260.0
)
