// Pinned: the newest release that the public proxy serves.
module peers

go 1.25.3

require github.com/hashicorp/vault v1.21.4

replace github.com/99designs/keyring => github.com/Jeffail/keyring v1.2.3

replace github.com/ma314smith/signedxml v1.1.1 => github.com/moov-io/signedxml v1.1.1
