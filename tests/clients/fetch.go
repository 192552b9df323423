// SPDX-License-Identifier: BSD-3-Clause
// CA URL NAME...: fetches one name and then the others at once, on one connection. Prints NAME SHA256
// PROTOCOL of each.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func fetch(client *http.Client, url, name string) (string, error) {
	response, err := client.Get(url + name)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return "", fmt.Errorf("%s: %s", name, response.Status)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, response.Body); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %x %s", name, sum.Sum(nil), response.TLS.NegotiatedProtocol), nil
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		panic("no certificate of an authority")
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	url, names := os.Args[2], os.Args[3:]
	lines := make(chan string, len(names))
	one := func(name string) {
		line, err := fetch(client, url, name)
		if err != nil {
			panic(err)
		}
		lines <- line
	}
	one(names[0]) // or several requests would begin connections before one is known to be HTTP/2
	for _, name := range names[1:] {
		go one(name)
	}
	for range names {
		fmt.Println(<-lines)
	}
}
