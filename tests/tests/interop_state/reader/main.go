// Command reader decodes states strictly with Pulumi's own types, and decrypts their secrets with the passphrase in
// PULUMI_CONFIG_PASSPHRASE, or with the key in a cloud that the state names. It prints one JSON object.
//
//	reader checkpoint FILE   "written" is the checkpoint in the format of Go's encoder, "secrets" are the plaintexts of all
//	                         secrets, in the order of the file
//	reader export FILE       the same of an export
//	reader bucket URL        all objects of a bucket: see bucket.go
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"
	_ "gocloud.dev/secrets/azurekeyvault"
)

const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
)

// checkpointFile is apitype.VersionedCheckpoint with a decoded checkpoint.
type checkpointFile struct {
	Version    int                  `json:"version"`
	Features   []string             `json:"features,omitempty"`
	Checkpoint apitype.CheckpointV3 `json:"checkpoint"`
}

type report struct {
	Written string   `json:"written"`
	Secrets []string `json:"secrets"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command, location string) error {
	passphrase := os.Getenv("PULUMI_CONFIG_PASSPHRASE")
	if command == "bucket" {
		found, err := readBucket(context.Background(), location)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	text, err := os.ReadFile(location)
	if err != nil {
		return err
	}
	read := readCheckpoint
	if command == "export" {
		read = readExport
	}
	found, err := read(text, passphrase)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func readCheckpoint(text []byte, passphrase string) (*report, error) {
	var outer apitype.VersionedCheckpoint
	if err := strictly(text, &outer); err != nil {
		return nil, fmt.Errorf("versioned checkpoint: %w", err)
	}
	file := checkpointFile{Version: outer.Version, Features: outer.Features}
	if err := strictly(outer.Checkpoint, &file.Checkpoint); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	deployment := file.Checkpoint.Latest
	if deployment == nil {
		return nil, fmt.Errorf("the checkpoint has no deployment")
	}
	return readDeployment(file, deployment.SecretsProviders, text, passphrase)
}

func readExport(text []byte, passphrase string) (*report, error) {
	var outer apitype.UntypedDeployment
	if err := strictly(text, &outer); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	var deployment apitype.DeploymentV3
	if err := strictly(outer.Deployment, &deployment); err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	return readDeployment(deployment, deployment.SecretsProviders, text, passphrase)
}

// readDeployment decrypts the secrets of a text, and encodes the value that was decoded from it.
func readDeployment(
	decoded any, provider *apitype.SecretsProvidersV1, text []byte, passphrase string,
) (*report, error) {
	var found report
	crypter, err := unlock(provider, passphrase)
	if err != nil {
		return nil, err
	}
	open := func(ciphertext string) error {
		plaintext, err := crypter.DecryptValue(context.Background(), ciphertext)
		found.Secrets = append(found.Secrets, plaintext)
		return err
	}
	if err := eachSecret(json.NewDecoder(bytes.NewReader(text)), open); err != nil {
		return nil, err
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return nil, err
	}
	found.Written = strings.TrimSuffix(written.String(), "\n")
	return &found, nil
}

func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// unlock returns the crypter of a state.
func unlock(provider *apitype.SecretsProvidersV1, passphrase string) (config.Crypter, error) {
	switch {
	case provider != nil && provider.Type == "passphrase":
		return unlockWithPassphrase(provider, passphrase)
	case provider != nil && provider.Type == "cloud":
		return unlockWithKey(context.Background(), provider)
	}
	return nil, fmt.Errorf("the secrets provider is neither a passphrase nor a key in a cloud")
}

// unlockWithKey decrypts the data key with the key whose URL the state has.
func unlockWithKey(ctx context.Context, provider *apitype.SecretsProvidersV1) (config.Crypter, error) {
	var state struct {
		URL          string `json:"url"`
		EncryptedKey []byte `json:"encryptedkey"`
	}
	if err := strictly(provider.State, &state); err != nil {
		return nil, err
	}
	keeper, err := secrets.OpenKeeper(ctx, state.URL)
	if err != nil {
		return nil, err
	}
	defer keeper.Close()
	encrypted := state.EncryptedKey
	// As in Pulumi's pkg/secrets/cloud/manager.go.
	if strings.HasPrefix(state.URL, "azurekeyvault://") {
		if encrypted, err = base64.RawURLEncoding.DecodeString(string(encrypted)); err != nil {
			return nil, err
		}
	}
	key, err := keeper.Decrypt(ctx, encrypted)
	if err != nil {
		return nil, err
	}
	return config.NewSymmetricCrypter(key), nil
}

// unlockWithPassphrase derives the key and checks it against the verifier in the salt.
func unlockWithPassphrase(provider *apitype.SecretsProvidersV1, passphrase string) (config.Crypter, error) {
	var state struct {
		Salt string `json:"salt"`
	}
	if err := strictly(provider.State, &state); err != nil {
		return nil, err
	}
	parts := strings.SplitN(state.Salt, ":", 3)
	if len(parts) != 3 || parts[0] != "v1" {
		return nil, fmt.Errorf("the salt %q is malformed", state.Salt)
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	crypter := config.NewSymmetricCrypterFromPassphrase(passphrase, salt)
	verifier, err := crypter.DecryptValue(context.Background(), parts[2])
	if err != nil || verifier != "pulumi" {
		return nil, fmt.Errorf("incorrect passphrase (%v)", err)
	}
	return crypter, nil
}

// eachSecret calls a function for the ciphertext of each secret, in the order of the text. A ciphertext is the member
// "ciphertext" that directly follows the signature of a secret.
func eachSecret(tokens *json.Decoder, call func(string) error) error {
	var before [3]any
	for {
		token, err := tokens.Token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if ciphertext, ok := token.(string); ok && before == [3]any{signatureKey, secretSignature, "ciphertext"} {
			if err := call(ciphertext); err != nil {
				return err
			}
		}
		before = [3]any{before[1], before[2], token}
	}
}
