package main

import "google.golang.org/protobuf/types/known/structpb"

// Wire format of values that JSON does not have.
const (
	unknown   = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
	signature = "4dabf18193072939515e22adb298388d"
	isSecret  = "1b47061264138c4ac30d75fd1eb44270"
)

// plain returns the value without its secret mark, and whether it had one.
func plain(value *structpb.Value) (*structpb.Value, bool) {
	if fields := value.GetStructValue().GetFields(); fields[signature].GetStringValue() == isSecret {
		return fields["value"], true
	}
	return value, false
}

// secret marks a string as secret.
func secret(value string) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		signature: structpb.NewStringValue(isSecret), "value": structpb.NewStringValue(value),
	}})
}

// text returns a string property; "" if it is missing.
func text(bag *structpb.Struct, key string) string {
	value, _ := plain(bag.GetFields()[key])
	return value.GetStringValue()
}

// hash returns the hash of an asset or archive; "" if it is missing.
func hash(bag *structpb.Struct, key string) string {
	value, _ := plain(bag.GetFields()[key])
	return value.GetStructValue().GetFields()["hash"].GetStringValue()
}
