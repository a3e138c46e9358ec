// Package processing does the work of the agent, which is the same before and after the migration.
package processing

import "errors"

// Task turns a task's input into its output.
func Task(input map[string]any) (map[string]any, error) {
	given, found := input["query"]
	if !found {
		given = input["text"]
	}
	query, isString := given.(string)
	if given != nil && !isString {
		return nil, errors.New("query must be a string")
	}
	// Your processing logic here.
	return map[string]any{"result": "Processed: " + query}, nil
}
