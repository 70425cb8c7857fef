// Get one URL as a Go server would: net/http with what it takes from the environment.
// Prints the status line and the body and exits 0; or the error on stderr, and 1.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer.Proto, answer.Status)
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
