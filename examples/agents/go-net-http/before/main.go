// An agent that speaks Simple A2A, with only the standard library.
//
//	request   {"task_id": "…", "input": {"query": "…"}}
//	answer    {"task_id": "…", "status": "success", "output": {"result": "…"}, "error": null}
//	          {"task_id": "…", "status": "error", "output": null, "error": "…"}
package main

import (
	"encoding/json"
	"log"
	"net/http"

	"example.com/agent/processing"
	"example.com/agent/serving"
)

type simpleRequest struct {
	TaskID *string `json:"task_id"`
	Input  any     `json:"input"`
}

type simpleResponse struct {
	TaskID *string        `json:"task_id"`
	Status string         `json:"status"`
	Output map[string]any `json:"output"`
	Error  *string        `json:"error"`
}

func main() {
	serving.Run(handleTask)
}

func handleTask(w http.ResponseWriter, r *http.Request) {
	body, refusal := serving.ReadBody(w, r)
	if refusal != nil {
		fail(w, refusal.Status, nil, refusal.Message)
		return
	}
	var task simpleRequest
	if err := json.Unmarshal(body, &task); err != nil {
		fail(w, http.StatusBadRequest, nil, "a task has a task_id and an input: "+err.Error())
		return
	}
	if task.TaskID == nil {
		fail(w, http.StatusBadRequest, nil, "task_id must be a string")
		return
	}
	input, ok := readInput(task.Input)
	if !ok {
		fail(w, http.StatusBadRequest, task.TaskID, "input must be an object or a text")
		return
	}
	output, err := processing.Task(input)
	if err != nil {
		log.Printf("Task %q has failed: %v", *task.TaskID, err)
		fail(w, http.StatusInternalServerError, task.TaskID, err.Error())
		return
	}
	answer(w, http.StatusOK, simpleResponse{TaskID: task.TaskID, Status: "success", Output: output})
}

func readInput(given any) (map[string]any, bool) {
	if text, ok := given.(string); ok {
		return map[string]any{"text": text}, true
	}
	input, ok := given.(map[string]any)
	return input, ok
}

func fail(w http.ResponseWriter, status int, taskID *string, message string) {
	answer(w, status, simpleResponse{TaskID: taskID, Status: "error", Error: &message})
}

func answer(w http.ResponseWriter, status int, response simpleResponse) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(response); err != nil {
		log.Printf("An answer could not be sent: %v", err)
	}
}
