module peers

go 1.26

require github.com/pulumi/pulumi-yaml v1.38.1
