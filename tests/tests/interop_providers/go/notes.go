package main

import (
	"encoding/json"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// call is the record of a call, with the form of the secret instead of its value.
type call struct {
	Call    string  `json:"call"`
	Name    string  `json:"name"`
	ID      string  `json:"id"`
	Preview bool    `json:"preview"`
	Secret  string  `json:"secret"`
	PID     int     `json:"pid"`
	Begin   float64 `json:"begin"`
	End     float64 `json:"end"`
}

// note starts the record of a call. The returned function ends the call and writes the record.
func (t *things) note(noted call) func() {
	noted.PID = os.Getpid()
	if noted.Secret == "" {
		noted.Secret = how(nil)
	}
	noted.Begin = now()
	return func() {
		noted.End = now()
		line, err := json.Marshal(noted)
		if err != nil {
			return
		}
		log, err := os.OpenFile(t.home+"/calls.jsonl", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return
		}
		defer log.Close()
		log.Write(append(line, '\n'))
	}
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1000 }

func how(bag *structpb.Struct) string {
	value, given := bag.GetFields()["secret"]
	if !given {
		return "absent"
	}
	if _, wrapped := plain(value); wrapped {
		return "wrapped"
	}
	return "plain"
}
