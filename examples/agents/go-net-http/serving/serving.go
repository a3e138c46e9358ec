// Package serving handles requests until a signal stops it, and finishes the requests in progress first.
package serving

import (
	"context"
	"errors"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const maxBodyBytes = 1_000_000

// Refusal is the error for a request that the agent cannot read, with its HTTP status.
type Refusal struct {
	Status  int
	Message string
}

// ReadBody returns the JSON text of a request.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, *Refusal) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return nil, &Refusal{http.StatusUnsupportedMediaType, "Content-Type must be application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &Refusal{http.StatusRequestEntityTooLarge, "the body is too large"}
	}
	if err != nil {
		return nil, &Refusal{http.StatusBadRequest, "the body did not come: " + err.Error()}
	}
	return body, nil
}

// Run serves the agent at /agent.
func Run(agent http.HandlerFunc) {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	listener, err := net.Listen("tcp", net.JoinHostPort(variable("HOST", "127.0.0.1"), variable("PORT", "8080")))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agent", agent)
	server := &http.Server{Handler: mux, ReadTimeout: 30 * time.Second}
	go func() {
		log.Printf("Agent listening at http://%s/agent", listener.Addr())
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-stop.Done()
	if err := server.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func variable(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
