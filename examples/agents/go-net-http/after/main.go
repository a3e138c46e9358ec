// The same agent in JSON-RPC 2.0.
//
//	request   {"jsonrpc": "2.0", "id": …, "method": "message/send", "params": {"message": {"role": "user",
//	              "messageId": "…", "parts": [{"kind": "text", "text": "…"}], "metadata": {…}}}}
//	answer    {"jsonrpc": "2.0", "id": …, "result": {"status": {"state": "completed"},
//	              "artifacts": […], "history": […]}}
//	          {"jsonrpc": "2.0", "id": …, "error": {"code": …, "message": "…"}}
//
// The first part of the message is the input.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"unicode/utf8"

	"example.com/agent/processing"
	"example.com/agent/serving"
)

const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
)

type object = map[string]any

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *result         `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type result struct {
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts"`
	History   []message  `json:"history"`
}

type status struct {
	State string `json:"state"`
}

type artifact struct {
	Parts []any `json:"parts"`
}

type message struct {
	Role  string `json:"role"`
	Parts []any  `json:"parts"`
}

type textPart struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func main() {
	serving.Run(handleJSONRPC)
}

func handleJSONRPC(w http.ResponseWriter, r *http.Request) {
	body, unread := serving.ReadBody(w, r)
	if unread != nil {
		answer(w, unread.Status, response{Error: &rpcError{invalidRequest, "Invalid Request: " + unread.Message}})
		return
	}
	id, done, err := handleCall(body)
	var refusal *rpcError
	switch {
	case errors.As(err, &refusal):
		answer(w, http.StatusBadRequest, response{ID: id, Error: refusal})
	case err != nil:
		log.Printf("Task %s has failed: %v", id, err)
		failure := &rpcError{internalError, "Internal error: " + err.Error()}
		answer(w, http.StatusInternalServerError, response{ID: id, Error: failure})
	default:
		answer(w, http.StatusOK, response{ID: id, Result: done})
	}
}

// handleCall returns the id for the response, even if the request is invalid in another way.
func handleCall(body []byte) (id json.RawMessage, done *result, err error) {
	if !utf8.Valid(body) {
		return nil, nil, &rpcError{parseError, "Parse error: the body is not UTF-8"}
	}
	if !json.Valid(body) {
		return nil, nil, &rpcError{parseError, "Parse error: the body is not JSON"}
	}
	// A map, not a struct: for a struct, Go would also accept "Method" as "method".
	var call map[string]json.RawMessage
	if json.Unmarshal(body, &call) != nil || call == nil {
		return nil, nil, &rpcError{invalidRequest, "Invalid Request: the body must be one object"}
	}
	id, idErr := readID(call)
	if version, ok := asString(call["jsonrpc"]); !ok || version != "2.0" {
		return id, nil, &rpcError{invalidRequest, "Invalid Request: jsonrpc must be 2.0"}
	}
	if idErr != nil {
		return nil, nil, idErr
	}
	method, ok := asString(call["method"])
	if !ok {
		return id, nil, &rpcError{invalidRequest, "Invalid Request: method must be a string"}
	}
	if method != "message/send" {
		return id, nil, &rpcError{methodNotFound, "Method not found: " + method}
	}
	part, input, err := readMessage(call["params"])
	if err != nil {
		return id, nil, err
	}
	output, err := processing.Task(input)
	if err != nil {
		return id, nil, err
	}
	done, err = completed(part, output)
	return id, done, err
}

// readID keeps the bytes of the id, so that a long number does not lose digits.
func readID(call map[string]json.RawMessage) (json.RawMessage, error) {
	id := call["id"]
	if len(id) > 0 && bytes.IndexByte([]byte(`"-0123456789n`), id[0]) >= 0 {
		return id, nil
	}
	return nil, &rpcError{invalidRequest, "Invalid Request: id must be a string, a number or null"}
}

func asString(raw json.RawMessage) (string, bool) {
	var text *string
	if json.Unmarshal(raw, &text) != nil || text == nil {
		return "", false
	}
	return *text, true
}

// readMessage returns the message's first part, and the input of the task.
func readMessage(raw json.RawMessage) (part, input object, err error) {
	var params object
	if json.Unmarshal(raw, &params) != nil {
		return nil, nil, &rpcError{invalidParams, "Invalid params: params must be an object"}
	}
	message, ok := params["message"].(object)
	if !ok {
		return nil, nil, &rpcError{invalidParams, "Invalid params: params.message must be an object"}
	}
	parts, ok := message["parts"].([]any)
	if !ok || len(parts) == 0 {
		return nil, nil, &rpcError{invalidParams, "Invalid params: params.message.parts must be a non-empty list"}
	}
	if part, ok = parts[0].(object); !ok {
		return nil, nil, &rpcError{invalidParams, "Invalid params: a part must be an object"}
	}
	if text, ok := part["text"].(string); ok && part["kind"] == "text" {
		return part, inputOfText(text, message["metadata"]), nil
	}
	if data, ok := part["data"].(object); ok && part["kind"] == "data" {
		return part, data, nil
	}
	return nil, nil, &rpcError{invalidParams, "Invalid params: a part must have text, or data that is an object"}
}

func inputOfText(text string, metadata any) object {
	// Trunkline sends an input's "text" or "query" as the text, and the whole input as metadata.
	if whole, ok := metadata.(object); ok && (whole["text"] != nil || whole["query"] != nil) {
		return whole
	}
	var found object
	if json.Unmarshal([]byte(text), &found) != nil || found == nil {
		return object{"text": text}
	}
	return found
}

func completed(part, output object) (*result, error) {
	text, err := json.Marshal(output)
	if err != nil {
		return nil, err
	}
	said := textPart{Kind: "text", Text: string(text)}
	return &result{
		Status:    status{State: "completed"},
		Artifacts: []artifact{{Parts: []any{said}}},
		History:   []message{{Role: "user", Parts: []any{part}}, {Role: "agent", Parts: []any{said}}},
	}, nil
}

func answer(w http.ResponseWriter, status int, response response) {
	response.JSONRPC = "2.0"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(response); err != nil {
		log.Printf("An answer could not be sent: %v", err)
	}
}
