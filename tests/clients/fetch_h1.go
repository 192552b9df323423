// SPDX-License-Identifier: BSD-3-Clause
// CA URL NAME...: fetches all names with HTTP/1.1, each twice. Prints NAME SHA256 PROTOCOL of each.
// CA may be a file that is empty, for a URL without TLS.
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

func fetch(client *http.Client, url, name string) {
	response, err := client.Get(url + name)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, response.Body); err != nil || response.StatusCode != 200 {
		panic(fmt.Sprint(name, response.Status, err))
	}
	fmt.Printf("%s %x %s\n", name, sum.Sum(nil), response.Proto)
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{}}} // no HTTP/2
	for _, name := range os.Args[3:] {
		fetch(client, os.Args[2], name)
	}
}
