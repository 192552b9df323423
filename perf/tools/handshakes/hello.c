/* SPDX-License-Identifier: BSD-3-Clause */
#include "hello.h"

#include <string.h>

#include "client.h"

#define RANDOM_AT     11u /* behind the heads of record and message, and legacy_version */
#define RANDOM_BYTES  32u
#define SHARE_BYTES   32u
#define EXT_KEY_SHARE 51u
#define X25519        29u

/* Finds the extension with one key share, of X25519: its type, three lengths and the group. */
static bool find_share(struct hello *h)
{
    static const uint8_t head[] = {0, EXT_KEY_SHARE, 0, 38, 0, 36, 0, X25519, 0, SHARE_BYTES};

    for (uint32_t at = RANDOM_AT; at + sizeof head + SHARE_BYTES <= h->n; at++) {
        if (memcmp(h->bytes + at, head, sizeof head) != 0)
            continue;
        h->share_at = at + sizeof head;
        return true;
    }
    return false;
}

bool hello_init(struct hello *h)
{
    SSL_CTX *ctx = client_ctx();
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    memset(h, 0, sizeof *h);
    if (ssl && in && out) {
        SSL_set_bio(ssl, in, out);
        SSL_set_connect_state(ssl);
        SSL_do_handshake(ssl); /* writes the ClientHello, and wants to read */
        int n = BIO_read(out, h->bytes, sizeof h->bytes);
        h->n = n > 0 ? (uint32_t)n : 0;
    }
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return find_share(h);
}

static void put(uint8_t *p, uint32_t n, struct nj_prng *prng)
{
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t r = nj_prng_next(prng);
        memcpy(p + i, &r, sizeof r);
    }
}

void hello_renew(struct hello *h, struct nj_prng *prng)
{
    put(h->bytes + RANDOM_AT, RANDOM_BYTES, prng);
    put(h->bytes + h->share_at, SHARE_BYTES, prng);
}
