/* SPDX-License-Identifier: BSD-3-Clause */
/* Names the likely cause when a file has no certificate or no key in PEM (RFC 7468), for which
 * OpenSSL says "no start line". */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/page_alloc.h"
#include "tls/handshake_internal.h"

#define FILE_BYTES_MAX (64u * 1024u) /* RSA of 16,384 bits takes 13 KiB */
#define DER_SEQUENCE   0x30

uint8_t *nj__tls_read_private(const char *path, uint32_t *n)
{
    uint8_t *bytes = nj_pages_map(FILE_BYTES_MAX, 0);
    int fd = bytes ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n_read = fd < 0 ? -1 : 1;

    for (*n = 0; n_read > 0 && *n<FILE_BYTES_MAX; *n += n_read> 0 ? (uint32_t)n_read : 0)
        n_read = read(fd, bytes + *n, FILE_BYTES_MAX - *n);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n_read < 0) {
        nj__tls_wipe_private(bytes);
        bytes = NULL;
    }
    errno = error;
    return bytes;
}

void nj__tls_wipe_private(uint8_t *bytes)
{
    if (!bytes)
        return;
    explicit_bzero(bytes, FILE_BYTES_MAX);
    nj_pages_unmap(bytes, FILE_BYTES_MAX);
}

static bool has(const uint8_t *bytes, uint32_t n, const char *label)
{
    return memmem(bytes, n, label, strlen(label)) != NULL;
}

static const char *guess(const uint8_t *bytes, uint32_t n, bool wants_key)
{
    bool is_pem = has(bytes, n, "-----BEGIN ");
    bool has_cert = has(bytes, n, "-----BEGIN CERTIFICATE-----");
    bool has_key = has(bytes, n, "PRIVATE KEY-----");

    if (n == 0)
        return "it is empty";
    if (wants_key && (has(bytes, n, "-----BEGIN ENCRYPTED PRIVATE KEY-----") ||
                      has(bytes, n, "Proc-Type: 4,ENCRYPTED")))
        return "it has a password: write it without one by openssl pkey -in FILE -out NEW";
    if (wants_key && has_cert && !has_key)
        return "it has a certificate and no private key: are cert and key swapped?";
    if (!wants_key && has_key && !has_cert)
        return "it has a private key and no certificate: are cert and key swapped?";
    if (!wants_key && has(bytes, n, "CERTIFICATE REQUEST-----"))
        return "it is a request for a certificate: name the file that the authority sent back";
    if (!is_pem && bytes[0] == DER_SEQUENCE)
        return wants_key ? "it is in DER: convert it by openssl pkey -inform DER -in FILE -out NEW"
                         : "it is in DER: convert it by openssl x509 -inform DER -in FILE -out NEW";
    return is_pem ? NULL : "it has no line that begins with -----BEGIN";
}

const char *nj__tls_guess_file(const char *path, bool wants_key)
{
    uint32_t n;
    uint8_t *bytes = nj__tls_read_private(path, &n);
    const char *text = bytes ? guess(bytes, n, wants_key) : NULL;

    nj__tls_wipe_private(bytes);
    return text;
}
